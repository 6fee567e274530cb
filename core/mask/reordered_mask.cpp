#include "core/mask/reordered_mask.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace attnscope {
namespace {

/// Wanted keys that lie among at most so many times as many are read with those between them.
constexpr int64_t kSpread = 8;

/// The tokens at some places.
IndexRange tokens_at(const PlaceOrder& order, IndexRange places) {
  if (order.is_identity() || places.empty()) return places;
  const auto tokens =
      order.tokens().subspan(static_cast<size_t>(places.begin), static_cast<size_t>(places.size()));
  const auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
  return {*least, int64_t{*most} + 1};
}

class ReorderedTerm : public MaskTerm {
 public:
  ReorderedTerm(Mask mask, MapPlaces places) : mask_(std::move(mask)), places_(std::move(places)) {}

  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override {
    return mask_.classify(batch, head, tokens_at(places_.rows, queries),
                          tokens_at(places_.keys, keys));
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    // Masks take rows that ascend.
    std::vector<size_t> order(queries.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return places_.rows.token(queries[a]) < places_.rows.token(queries[b]);
    });
    std::vector<int64_t> rows;
    for (const size_t i : order) rows.push_back(places_.rows.token(queries[i]));
    std::vector<float> bias;
    for (const Run& run : runs_of(keys)) {
      const int64_t width = run.tokens.size();
      bias.resize(rows.size() * static_cast<size_t>(width));
      mask_.fill_bias(batch, head, rows, run.tokens, bias.data(), width);
      for (size_t r = 0; r < rows.size(); ++r) {
        float* const row = out + static_cast<int64_t>(order[r]) * row_stride;
        const float* const from = bias.data() + static_cast<int64_t>(r) * width;
        for (const Key& key : run.keys) row[key.place] += from[key.token - run.tokens.begin];
      }
    }
  }

  bool has_finite_bias() const override { return mask_.has_finite_bias(); }
  std::string describe() const override { return mask_.describe() + " in another order"; }
  std::string identity() const override { return mask_.identity() + " in another order"; }
  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    mask_.check_shape(batch, heads, queries, keys);
  }

 private:
  struct Key {
    int64_t token = 0;
    int64_t place = 0;  ///< in the rectangle
  };
  /// Keys that are read together.
  struct Run {
    IndexRange tokens;
    std::vector<Key> keys;
  };

  std::vector<Run> runs_of(IndexRange places) const {
    std::vector<Key> keys;
    for (int64_t place = places.begin; place < places.end; ++place) {
      keys.push_back({places_.keys.token(place), place - places.begin});
    }
    std::sort(keys.begin(), keys.end(),
              [](const Key& a, const Key& b) { return a.token < b.token; });
    std::vector<Run> runs;
    for (const Key& key : keys) {
      if (runs.empty() || key.token - runs.back().tokens.end >= kSpread) {
        runs.push_back({{key.token, key.token + 1}, {}});
      }
      runs.back().tokens.end = key.token + 1;
      runs.back().keys.push_back(key);
    }
    return runs;
  }

  Mask mask_;
  MapPlaces places_;
};

}  // namespace

Mask reordered_mask(const Mask& mask, const MapPlaces& places) {
  if (mask.is_none() || places.is_identity()) return mask;
  return Mask::term(std::make_shared<ReorderedTerm>(mask, places));
}

}  // namespace attnscope
