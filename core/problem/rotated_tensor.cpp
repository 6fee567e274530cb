#include "core/problem/rotated_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace attnscope {
namespace {

/// Rows are turned in pieces of about this many bytes.
constexpr int64_t kPieceBytes = int64_t{256} << 10;

void store(DType dtype, const float* values, int64_t count, std::byte* out) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == DType::f32) {
      std::memcpy(out + 4 * i, values + i, 4);
      continue;
    }
    const uint16_t bits = dtype == DType::bf16 ? to_bf16(values[i]).bits : to_f16(values[i]).bits;
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

class RotatedTensor : public TensorSource {
 public:
  RotatedTensor(const HeadTensor& tensor, std::vector<HeadRotation> rotations)
      : tensor_(tensor),
        rotations_(std::move(rotations)),
        shape_{tensor.batch(), tensor.heads(), tensor.tokens(), tensor.width()} {}

  DType dtype() const override { return tensor_.dtype(); }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return tensor_.source().name(); }
  bool prefers_order() const override { return tensor_.source().prefers_order(); }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    const int64_t step = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, row_bytes()));
    Buffers buffers;
    for (int64_t b = begin[0]; b < begin[0] + count[0]; ++b) {
      for (int64_t h = begin[1]; h < begin[1] + count[1]; ++h) {
        const int64_t end = begin[2] + count[2];
        for (int64_t row = begin[2]; row < end; row += step) {
          const IndexRange rows{row, std::min(row + step, end)};
          destination =
              read_rows(b, h, rows, {begin[3], begin[3] + count[3]}, buffers, destination);
        }
      }
    }
  }

 private:
  struct Buffers {
    std::vector<std::byte> raw;
    std::vector<float> values;
  };

  int64_t row_bytes() const { return tensor_.row_bytes(); }

  /// Gives the place after what was written.
  std::byte* read_rows(int64_t batch, int64_t head, IndexRange rows, IndexRange channels,
                       Buffers& buffers, std::byte* destination) const {
    const int64_t width = tensor_.width();
    buffers.raw.resize(static_cast<size_t>(rows.size() * row_bytes()));
    buffers.values.resize(static_cast<size_t>(rows.size() * width));
    tensor_.read_rows(batch, head, rows, buffers.raw.data());
    to_floats(dtype(), buffers.raw.data(), rows.size() * width, buffers.values.data());
    for (int64_t i = 0; i < rows.size(); ++i) {
      float* row = buffers.values.data() + i * width;
      rotations_[static_cast<size_t>(head)].apply(rows.begin + i, row);
      store(dtype(), row + channels.begin, channels.size(), destination);
      destination += channels.size() * dtype_bytes(dtype());
    }
    return destination;
  }

  HeadTensor tensor_;
  std::vector<HeadRotation> rotations_;
  std::array<int64_t, 4> shape_;
};

}  // namespace

std::shared_ptr<const TensorSource> rotated_tensor(const HeadTensor& tensor,
                                                   std::vector<HeadRotation> rotations) {
  return std::make_shared<RotatedTensor>(tensor, std::move(rotations));
}

}  // namespace attnscope
