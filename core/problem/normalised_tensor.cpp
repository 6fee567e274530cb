#include "core/problem/normalised_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Rows are read in pieces of about this many bytes.
constexpr int64_t kNormalisedBytes = int64_t{256} << 10;

class NormalisedTensor : public TensorSource {
 public:
  NormalisedTensor(const HeadTensor& tensor, std::shared_ptr<const TensorSource> normaliser)
      : tensor_(tensor),
        normaliser_(std::move(normaliser)),
        shape_{tensor.batch(), tensor.heads(), tensor.tokens(), tensor.width()} {}

  DType dtype() const override { return DType::f32; }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return tensor_.source().name(); }
  bool prefers_order() const override { return tensor_.source().prefers_order(); }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    const int64_t step = std::max<int64_t>(1, kNormalisedBytes / (4 * tensor_.width()));
    Buffers buffers;
    const IndexRange channels{begin[3], begin[3] + count[3]};
    for (int64_t b = begin[0]; b < begin[0] + count[0]; ++b) {
      for (int64_t h = begin[1]; h < begin[1] + count[1]; ++h) {
        const int64_t end = begin[2] + count[2];
        for (int64_t row = begin[2]; row < end; row += step) {
          const IndexRange rows{row, std::min(row + step, end)};
          destination = read_rows(b, h, rows, channels, buffers, destination);
        }
      }
    }
  }

 private:
  struct Buffers {
    std::vector<std::byte> raw;
    std::vector<float> values, norms;
  };

  /// Gives the place after what was written.
  std::byte* read_rows(int64_t batch, int64_t head, IndexRange rows, IndexRange channels,
                       Buffers& buffers, std::byte* destination) const {
    const int64_t width = tensor_.width();
    buffers.raw.resize(static_cast<size_t>(rows.size() * tensor_.row_bytes()));
    buffers.values.resize(static_cast<size_t>(rows.size() * width));
    tensor_.read_rows(batch, head, rows, buffers.raw.data());
    to_floats(tensor_.dtype(), buffers.raw.data(), rows.size() * width, buffers.values.data());
    if (normaliser_) read_norms(batch, head, rows, buffers.norms);
    for (int64_t i = 0; i < rows.size(); ++i) {
      float* row = buffers.values.data() + i * width + channels.begin;
      if (normaliser_) {
        const double norm = buffers.norms[static_cast<size_t>(i)];
        std::transform(row, row + channels.size(), row,
                       [&](float value) { return static_cast<float>(double{value} / norm); });
      }
      std::memcpy(destination, row, static_cast<size_t>(channels.size()) * sizeof(float));
      destination += channels.size() * static_cast<int64_t>(sizeof(float));
    }
    return destination;
  }

  void read_norms(int64_t batch, int64_t head, IndexRange rows, std::vector<float>& norms) const {
    norms.resize(static_cast<size_t>(rows.size()));
    const std::array<int64_t, 3> begin{batch, head, rows.begin}, count{1, 1, rows.size()};
    normaliser_->read(begin, count, reinterpret_cast<std::byte*>(norms.data()));
    for (int64_t i = 0; i < rows.size(); ++i) {
      const float norm = norms[static_cast<size_t>(i)];
      if (std::isfinite(norm) && norm > 0) continue;
      throw Error(ErrorCode::value,
                  normaliser_->name() + ": batch " + std::to_string(batch) + ", head " +
                      std::to_string(head) + ", token " + std::to_string(rows.begin + i) + " is " +
                      std::to_string(norm) + " (expected a finite number above 0)");
    }
  }

  HeadTensor tensor_;
  std::shared_ptr<const TensorSource> normaliser_;
  std::array<int64_t, 4> shape_;
};

}  // namespace

std::shared_ptr<const TensorSource> normalised_tensor(
    const HeadTensor& tensor, std::shared_ptr<const TensorSource> normaliser) {
  return std::make_shared<NormalisedTensor>(tensor, std::move(normaliser));
}

}  // namespace attnscope
