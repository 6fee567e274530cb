#include "io/stream_chunks/joined_rows.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <memory>
#include <utility>

namespace attnscope {
namespace {

class JoinedRows : public TensorSource {
 public:
  JoinedRows(std::string name, DType dtype, int64_t batch, int64_t heads, int64_t width,
             std::vector<RowPiece> pieces)
      : name_(std::move(name)), dtype_(dtype), pieces_(std::move(pieces)) {
    int64_t rows = 0;
    for (const RowPiece& piece : pieces_) {
      begins_.push_back(rows);
      rows += piece.rows.size();
    }
    shape_ = {batch, heads, rows};
    if (width > 0) shape_.push_back(width);
    row_bytes_ = std::max<int64_t>(1, width) * dtype_bytes(dtype);
  }

  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return name_; }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    assert(begin.size() == shape_.size() && count.size() == shape_.size());
    const IndexRange rows{begin[2], begin[2] + count[2]};
    const bool whole = shape_.size() == 3 || count[3] == shape_[3];
    std::vector<std::byte> buffer(whole ? 0 : static_cast<size_t>(rows.size() * row_bytes_));
    for (int64_t b = begin[0]; b < begin[0] + count[0]; ++b) {
      for (int64_t h = begin[1]; h < begin[1] + count[1]; ++h) {
        if (whole) {
          read_rows(b, h, rows, destination);
          destination += rows.size() * row_bytes_;
          continue;
        }
        read_rows(b, h, rows, buffer.data());
        const int64_t bytes = count[3] * dtype_bytes(dtype_);
        for (int64_t row = 0; row < rows.size(); ++row, destination += bytes) {
          std::memcpy(destination,
                      buffer.data() + row * row_bytes_ + begin[3] * dtype_bytes(dtype_),
                      static_cast<size_t>(bytes));
        }
      }
    }
  }

 private:
  void read_rows(int64_t batch, int64_t head, IndexRange rows, std::byte* destination) const {
    const auto past = std::upper_bound(begins_.begin(), begins_.end(), rows.begin);
    auto piece = static_cast<size_t>(past - begins_.begin()) - 1;
    while (!rows.empty()) {
      const IndexRange& of = pieces_[piece].rows;
      const int64_t first = of.begin + rows.begin - begins_[piece];
      const int64_t length = std::min(rows.size(), of.end - first);
      pieces_[piece].read(batch, head, {first, first + length}, destination);
      destination += length * row_bytes_;
      rows.begin += length;
      ++piece;
    }
  }

  const std::string name_;
  const DType dtype_;
  const std::vector<RowPiece> pieces_;
  std::vector<int64_t> begins_;  ///< the joined row that each piece begins with
  std::vector<int64_t> shape_;
  int64_t row_bytes_ = 0;
};

}  // namespace

RowPiece head_rows(HeadTensor tensor, IndexRange rows) {
  return {rows, [tensor = std::move(tensor)](int64_t batch, int64_t head, IndexRange part,
                                             std::byte* destination) {
            tensor.read_rows(batch, head, part, destination);
          }};
}

RowPiece scalar_rows(std::shared_ptr<const TensorSource> tensor, IndexRange rows) {
  return {rows, [tensor = std::move(tensor)](int64_t batch, int64_t head, IndexRange part,
                                             std::byte* destination) {
            const std::array<int64_t, 3> begin{batch, head, part.begin}, count{1, 1, part.size()};
            tensor->read(begin, count, destination);
          }};
}

std::shared_ptr<const TensorSource> joined_rows(std::string name, DType dtype, int64_t batch,
                                                int64_t heads, int64_t width,
                                                std::vector<RowPiece> pieces) {
  return std::make_shared<JoinedRows>(std::move(name), dtype, batch, heads, width,
                                      std::move(pieces));
}

}  // namespace attnscope
