#include "core/tensor/gathered_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace attnscope {
namespace {

constexpr int64_t kSpanBytes = int64_t{1} << 20;
/// Reading so much in vain takes less than asking once more.
constexpr int64_t kGapBytes = int64_t{4} << 10;

class GatheredTensor : public TensorSource {
 public:
  GatheredTensor(const HeadTensor& tensor, PlaceOrder order)
      : tensor_(tensor),
        order_(std::move(order)),
        shape_{tensor.batch(), tensor.heads(), tensor.tokens(), tensor.width()} {}

  DType dtype() const override { return tensor_.dtype(); }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return tensor_.source().name(); }
  bool prefers_order() const override { return tensor_.source().prefers_order(); }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    const std::vector<Row> rows = rows_of({begin[2], begin[2] + count[2]});
    const IndexRange channels{begin[3], begin[3] + count[3]};
    const int64_t plane = count[2] * channels.size() * dtype_bytes(dtype());
    std::vector<std::byte> raw;
    for (int64_t b = begin[0]; b < begin[0] + count[0]; ++b) {
      for (int64_t h = begin[1]; h < begin[1] + count[1]; ++h) {
        read_plane(b, h, rows, channels, raw, destination);
        destination += plane;
      }
    }
  }

 private:
  struct Row {
    int64_t token = 0;  ///< where it is stored
    int64_t place = 0;  ///< in the box
  };

  std::vector<Row> rows_of(IndexRange places) const {
    std::vector<Row> rows;
    rows.reserve(static_cast<size_t>(places.size()));
    for (int64_t place = places.begin; place < places.end; ++place) {
      rows.push_back({order_.token(place), place - places.begin});
    }
    std::sort(rows.begin(), rows.end(),
              [](const Row& a, const Row& b) { return a.token < b.token; });
    return rows;
  }

  void read_plane(int64_t batch, int64_t head, const std::vector<Row>& rows, IndexRange channels,
                  std::vector<std::byte>& raw, std::byte* destination) const {
    const int64_t stored = tensor_.row_bytes();
    const int64_t most = std::max<int64_t>(1, kSpanBytes / stored);
    const int64_t gap = std::max<int64_t>(1, kGapBytes / stored);
    const int64_t wanted = channels.size() * dtype_bytes(dtype());
    for (size_t first = 0; first < rows.size();) {
      size_t past = first + 1;
      while (past < rows.size() && rows[past].token - rows[past - 1].token <= gap &&
             rows[past].token - rows[first].token < most) {
        ++past;
      }
      const IndexRange span{rows[first].token, rows[past - 1].token + 1};
      raw.resize(static_cast<size_t>(span.size() * stored));
      tensor_.read_rows(batch, head, span, raw.data());
      for (; first < past; ++first) {
        const std::byte* const from = raw.data() + (rows[first].token - span.begin) * stored +
                                      channels.begin * dtype_bytes(dtype());
        std::memcpy(destination + rows[first].place * wanted, from, static_cast<size_t>(wanted));
      }
    }
  }

  HeadTensor tensor_;
  PlaceOrder order_;
  std::array<int64_t, 4> shape_;
};

}  // namespace

std::shared_ptr<const TensorSource> gathered_tensor(const HeadTensor& tensor, PlaceOrder order) {
  return std::make_shared<GatheredTensor>(tensor, std::move(order));
}

}  // namespace attnscope
