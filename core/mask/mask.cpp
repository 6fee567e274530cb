#include "core/mask/mask.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/mask/mask_keys.h"
#include "core/mask/mask_tensor.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// A mask that keeps, in row i, the keys from first(i) to last(i): what causal and window masks
/// are.
class DiagonalTerm : public MaskTerm {
 public:
  /// key ≤ query + above and key ≥ query − below, each of either sign.
  DiagonalTerm(int64_t below, int64_t above, std::string name)
      : below_(below), above_(above), name_(std::move(name)) {}

  TileClass classify(int64_t, int64_t, IndexRange queries, IndexRange keys) const override {
    // key − query over the rectangle.
    const int64_t least = keys.begin - (queries.end - 1);
    const int64_t most = keys.end - 1 - queries.begin;
    if (least > above_ || most < -below_) return TileClass::empty;
    return most <= above_ && least >= -below_ ? TileClass::full : TileClass::mixed;
  }

  void add_bias(int64_t, int64_t, std::span<const int64_t> queries, IndexRange keys, float* out,
                int64_t row_stride) const override {
    for (int64_t query : queries) {
      // The bounds are huge where there is none; the keys' own range keeps the sums small.
      const int64_t first = below_ >= query ? 0 : query - below_;
      const int64_t past = above_ >= keys.end ? keys.end : query + above_ + 1;
      const IndexRange kept = intersect(keys, {first, past});
      std::fill(out, out + (kept.empty() ? keys.size() : kept.begin - keys.begin), kMasked);
      if (!kept.empty()) std::fill(out + (kept.end - keys.begin), out + keys.size(), kMasked);
      out += row_stride;
    }
  }

  std::string describe() const override { return name_; }
  void check_shape(int64_t, int64_t, int64_t, int64_t) const override {}

 private:
  const int64_t below_, above_;
  const std::string name_;
};

/// Far above any index, and its sums with indices do not overflow.
constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 4;

}  // namespace

Mask Mask::causal() { return Mask(std::make_shared<DiagonalTerm>(kUnbounded, 0, "causal")); }

Mask Mask::window(int64_t reach) {
  if (reach < 0) {
    throw usage_error("mask window:" + std::to_string(reach) + ": the reach must be at least 0");
  }
  const int64_t bound = std::min(reach, kUnbounded);
  return Mask(std::make_shared<DiagonalTerm>(bound, bound, "window:" + std::to_string(reach)));
}

Mask Mask::window(int64_t left, int64_t right, int64_t shift) {
  const std::string name = "window:" + std::to_string(left) + "," + std::to_string(right);
  if (left < -1 || right < -1) throw usage_error("mask " + name + ": expected −1 or more");
  const auto bound = [](int64_t reach) {
    return reach < 0 ? kUnbounded : std::min(reach, kUnbounded);
  };
  return Mask(std::make_shared<DiagonalTerm>(bound(left) - shift, bound(right) + shift, name));
}

Mask Mask::keys(std::vector<std::vector<uint8_t>> valid) {
  return Mask(keys_term(std::move(valid)));
}

Mask Mask::key_lengths(std::vector<int64_t> lengths, int64_t num_keys) {
  return Mask(key_lengths_term(std::move(lengths), num_keys));
}

Mask Mask::key_range(IndexRange range, int64_t num_keys) {
  return Mask(key_range_term(range, num_keys));
}

Mask Mask::segments(std::vector<int64_t> cu_queries, std::vector<int64_t> cu_keys) {
  return Mask(segments_term(std::move(cu_queries), std::move(cu_keys)));
}

Mask Mask::blocks(const BlockMask& blocks) { return Mask(blocks_term(blocks)); }

Mask Mask::tensor(std::shared_ptr<const TensorSource> source) {
  return Mask(tensor_term(std::move(source)));
}

Mask Mask::term(MaskTermPtr term) { return Mask(std::move(term)); }

Mask Mask::operator&(const Mask& other) const {
  Mask both = *this;
  both.terms_.insert(both.terms_.end(), other.terms_.begin(), other.terms_.end());
  return both;
}

TileClass Mask::classify(int64_t batch, int64_t head, IndexRange queries, IndexRange keys) const {
  if (queries.empty() || keys.empty()) return TileClass::empty;
  TileClass result = TileClass::full;
  for (const auto& term : terms_) {
    const TileClass one = term->classify(batch, head, queries, keys);
    if (one == TileClass::empty) return TileClass::empty;
    if (one == TileClass::mixed) result = TileClass::mixed;
  }
  return result;
}

void Mask::fill_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                     float* out, int64_t row_stride) const {
  for (size_t row = 0; row < queries.size(); ++row) {
    std::fill_n(out + static_cast<int64_t>(row) * row_stride, keys.size(), 0.0f);
  }
  for (const auto& term : terms_) term->add_bias(batch, head, queries, keys, out, row_stride);
  for (size_t row = 0; row < queries.size(); ++row) {
    float* const biases = out + static_cast<int64_t>(row) * row_stride;
    std::transform(biases, biases + keys.size(), biases, effective_bias);
  }
}

bool Mask::has_finite_bias() const {
  return std::any_of(terms_.begin(), terms_.end(),
                     [](const auto& term) { return term->has_finite_bias(); });
}

std::string Mask::describe() const { return joined(&MaskTerm::describe); }
std::string Mask::identity() const { return joined(&MaskTerm::identity); }

std::string Mask::joined(std::string (MaskTerm::*text_of)() const) const {
  if (is_none()) return "none";
  std::string text;
  for (const auto& term : terms_) text += (text.empty() ? "" : " & ") + (*term.*text_of)();
  return text;
}

void Mask::check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const {
  for (const auto& term : terms_) term->check_shape(batch, heads, queries, keys);
}

}  // namespace attnscope
