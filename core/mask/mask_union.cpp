#include "core/mask/mask_union.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

class UnionTerm : public MaskTerm {
 public:
  explicit UnionTerm(std::vector<Mask> masks) : masks_(std::move(masks)) {}

  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override {
    TileClass result = TileClass::empty;
    for (const Mask& mask : masks_) {
      const TileClass one = mask.classify(batch, head, queries, keys);
      if (one == TileClass::full) return one;
      if (one == TileClass::mixed) result = one;
    }
    return result;
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const auto width = static_cast<size_t>(keys.size());
    std::vector<float> one(width);
    std::vector<float> best(width);
    for (const int64_t& query : queries) {
      std::fill(best.begin(), best.end(), kMasked);
      for (const Mask& mask : masks_) {
        const TileClass row = mask.classify(batch, head, {query, query + 1}, keys);
        if (row == TileClass::empty) continue;
        mask.fill_bias(batch, head, {&query, 1}, keys, one.data(), keys.size());
        for (size_t j = 0; j < width; ++j) best[j] = std::max(best[j], one[j]);
        if (row == TileClass::full) break;
      }
      for (size_t j = 0; j < width; ++j) out[j] += best[j];
      out += row_stride;
    }
  }

  std::string describe() const override {
    std::string text;
    for (const Mask& mask : masks_) text += (text.empty() ? "(" : " | ") + mask.describe();
    return text + ")";
  }

  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    for (const Mask& mask : masks_) mask.check_shape(batch, heads, queries, keys);
  }

 private:
  const std::vector<Mask> masks_;
};

}  // namespace

Mask mask_union(std::vector<Mask> masks) {
  if (masks.empty()) throw usage_error("mask: \"or\" of no masks");
  for (const Mask& mask : masks) {
    if (mask.has_finite_bias()) {
      throw usage_error("mask: \"or\" of " + mask.describe() + ", which has biases");
    }
  }
  if (masks.size() == 1) return masks.front();
  return Mask::term(std::make_shared<UnionTerm>(std::move(masks)));
}

}  // namespace attnscope
