#include "core/tensor/fp4_tensor.h"

#include <cmath>
#include <limits>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

class NibbleTensor : public TensorSource {
 public:
  NibbleTensor(std::shared_ptr<const TensorSource> bytes, NibbleOrder order)
      : bytes_(std::move(bytes)),
        order_(order),
        shape_(bytes_->shape().begin(), bytes_->shape().end()) {
    if (shape_.empty()) return;
    const auto channels = checked_mul(shape_.back(), 2);
    if (!channels) throw file_error(name(), "", "a shape of two codes a byte overflows");
    shape_.back() = *channels;
  }

  DType dtype() const override { return DType::u8; }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return bytes_->name(); }
  bool prefers_order() const override { return bytes_->prefers_order(); }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    std::vector<int64_t> from(begin.begin(), begin.end()), extent(count.begin(), count.end());
    const int64_t first = begin.back() % 2, codes = count.back();
    from.back() = begin.back() / 2;
    const int64_t width = extent.back() = (first + codes + 1) / 2;
    int64_t rows = 1;
    for (size_t axis = 0; axis + 1 < extent.size(); ++axis) rows *= extent[axis];
    if (rows == 0 || codes == 0) return;
    // The bytes stand at the end of what they become, which goes on from its beginning and never
    // passes a byte that is still needed: of codes first … of a row at most `codes` have `width`.
    const std::byte* bytes = destination + rows * (codes - width);
    bytes_->read(from, extent, destination + rows * (codes - width));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < codes; ++i) {
        const std::byte pair = bytes[row * width + (first + i) / 2];
        const bool low = ((first + i) % 2 == 0) == (order_ == NibbleOrder::low_first);
        destination[row * codes + i] = low ? pair & std::byte{0xf} : pair >> 4;
      }
    }
  }

 private:
  const std::shared_ptr<const TensorSource> bytes_;
  const NibbleOrder order_;
  std::vector<int64_t> shape_;
};

}  // namespace

const Fp4Bytes* as_fp4(const TensorSource& tensor) {
  return dynamic_cast<const Fp4Bytes*>(&tensor);
}

std::shared_ptr<const TensorSource> nibble_tensor(std::shared_ptr<const TensorSource> bytes,
                                                  NibbleOrder order) {
  return std::make_shared<NibbleTensor>(std::move(bytes), order);
}

float e2m1_value(uint8_t code) {
  const int exponent = (code >> 1) & 3, mantissa = code & 1;
  const float value = exponent == 0
                          ? 0.5f * static_cast<float>(mantissa)
                          : std::ldexp(1 + 0.5f * static_cast<float>(mantissa), exponent - 1);
  return (code & 8) != 0 ? -value : value;
}

float e8m0_value(uint8_t code) {
  return code == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, code - 127);
}

}  // namespace attnscope
