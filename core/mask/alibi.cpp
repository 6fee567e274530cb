#include "core/mask/alibi.h"

#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

class AlibiTerm : public MaskTerm {
 public:
  AlibiTerm(AlibiSlopes slopes, int64_t shift) : slopes_(std::move(slopes)), shift_(shift) {}

  TileClass classify(int64_t batch, int64_t head, IndexRange, IndexRange) const override {
    return slope_of(batch, head) == 0 ? TileClass::full : TileClass::mixed;
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const float slope = slope_of(batch, head);
    for (const int64_t query : queries) {
      for (int64_t key = keys.begin; key < keys.end; ++key) {
        out[key - keys.begin] -= slope * static_cast<float>(std::abs(query + shift_ - key));
      }
      out += row_stride;
    }
  }

  bool has_finite_bias() const override { return true; }
  std::string describe() const override { return "alibi"; }

  std::string identity() const override {
    std::string text = describe();
    for (const int64_t extent : slopes_.shape) text += " " + std::to_string(extent);
    for (const float slope : slopes_.each) {
      text += " " + std::to_string(std::bit_cast<uint32_t>(slope));
    }
    return text;
  }

  void check_shape(int64_t batch, int64_t heads, int64_t, int64_t) const override {
    const std::array<int64_t, 2> call{batch, heads};
    for (size_t axis = 0; axis < call.size(); ++axis) {
      if (slopes_.shape[axis] == 1 || slopes_.shape[axis] == call[axis]) continue;
      throw usage_error("alibi slopes of " + std::to_string(slopes_.shape[axis]) +
                        (axis == 0 ? " batch items" : " heads") + ", expected 1 or " +
                        std::to_string(call[axis]));
    }
  }

 private:
  float slope_of(int64_t batch, int64_t head) const {
    const int64_t item = slopes_.shape[0] == 1 ? 0 : batch;
    return slopes_
        .each[static_cast<size_t>(item * slopes_.shape[1] + (slopes_.shape[1] == 1 ? 0 : head))];
  }

  const AlibiSlopes slopes_;
  const int64_t shift_;
};

}  // namespace

Mask alibi_mask(AlibiSlopes slopes, int64_t shift) {
  for (size_t i = 0; i < slopes.each.size(); ++i) {
    if (std::isfinite(slopes.each[i])) continue;
    throw Error(ErrorCode::value,
                "alibi slope of batch " +
                    std::to_string(static_cast<int64_t>(i) / slopes.shape[1]) + ", head " +
                    std::to_string(static_cast<int64_t>(i) % slopes.shape[1]) + " is not finite");
  }
  return Mask::term(std::make_shared<AlibiTerm>(std::move(slopes), shift));
}

}  // namespace attnscope
