#include "core/mask/picked_blocks.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/mask/bit_rows.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

double dot(const double* a, std::span<const double> b) {
  double sum = 0;
  for (size_t c = 0; c < b.size(); ++c) sum += a[c] * b[c];
  return sum;
}

class PickedBlocks : public MaskTerm {
 public:
  PickedBlocks(std::shared_ptr<const BlockPicks> picks, std::string name,
               std::shared_ptr<const DroppedTerms> terms)
      : picks_(std::move(picks)),
        name_(std::move(name)),
        terms_(std::move(terms)),
        neighbours_(ascend(picks_->queries) && ascend(picks_->keys)),
        bits_(picks_->queries.size(), picks_->keys.size()) {
    const auto columns = static_cast<size_t>(picks_->keys.size());
    for (int64_t i = 0; i < picks_->queries.size(); ++i) {
      bits_.fill_row(i, {picks_->row(i), columns});
    }
  }

  TileClass classify(int64_t, int64_t, IndexRange queries, IndexRange keys) const override {
    if (!neighbours_) return TileClass::mixed;
    return bits_.classify(blocks_of(picks_->queries, queries), blocks_of(picks_->keys, keys));
  }

  void add_bias(int64_t, int64_t, std::span<const int64_t> queries, IndexRange keys, float* out,
                int64_t row_stride) const override {
    const int32_t* const block = picks_->keys.of_token.data() + keys.begin;
    for (const int64_t query : queries) {
      const uint8_t* const kept = picks_->row(picks_->queries.of_token[static_cast<size_t>(query)]);
      for (int64_t j = 0; j < keys.size(); ++j) {
        if (kept[block[j]] == 0) out[j] = kMasked;
      }
      out += row_stride;
    }
  }

  std::string describe() const override { return name_; }

  void check_shape(int64_t, int64_t, int64_t queries, int64_t keys) const override {
    const auto own_queries = static_cast<int64_t>(picks_->queries.of_token.size());
    const auto own_keys = static_cast<int64_t>(picks_->keys.of_token.size());
    if (own_queries == queries && own_keys == keys) return;
    throw usage_error("mask " + name_ + ": is of " + std::to_string(own_queries) + " x " +
                      std::to_string(own_keys) + " tokens, not of " + std::to_string(queries) +
                      " x " + std::to_string(keys));
  }

  const DroppedTerms* dropped() const override { return terms_.get(); }

 private:
  static bool ascend(const TokenBlocks& blocks) {
    return std::is_sorted(blocks.of_token.begin(), blocks.of_token.end());
  }
  static IndexRange blocks_of(const TokenBlocks& blocks, IndexRange tokens) {
    return {blocks.of_token[static_cast<size_t>(tokens.begin)],
            blocks.of_token[static_cast<size_t>(tokens.end - 1)] + 1};
  }

  const std::shared_ptr<const BlockPicks> picks_;
  const std::string name_;
  const std::shared_ptr<const DroppedTerms> terms_;
  const bool neighbours_;  ///< the tokens of each block of both sides
  BitRows bits_;
};

}  // namespace

DroppedTerms::Sum DroppedTerms::add(int64_t index, std::span<const double> query, double lse,
                                    std::span<double> out) const {
  const int64_t key_blocks = picks->keys.size();
  const int64_t query_block = picks->queries.of_token[static_cast<size_t>(index)];
  const uint8_t* const kept = picks->row(query_block);
  const double own = shared.empty() ? 0 : scale * dot(centre.data(), query);
  const auto width = static_cast<int64_t>(query.size());
  std::vector<double> logits(static_cast<size_t>(key_blocks));
  double top = lse;
  for (int64_t j = 0; j < key_blocks; ++j) {
    if (kept[j] != 0) continue;
    double& logit = logits[static_cast<size_t>(j)];
    logit = shared.empty() ? scale * dot(key_means.data() + j * width, query)
                           : own + shared[static_cast<size_t>(query_block * key_blocks + j)];
    top = std::max(top, logit);
  }
  Sum sum{.mass = 0, .others = std::exp(lse - top)};
  for (double& value : out) value *= sum.others;
  for (int64_t j = 0; j < key_blocks; ++j) {
    if (kept[j] != 0) continue;
    const auto block = static_cast<size_t>(j);
    const double weight =
        static_cast<double>(picks->keys.lengths[block]) * std::exp(logits[block] - top);
    sum.mass += weight;
    const double* const value = value_means.data() + j * static_cast<int64_t>(out.size());
    for (size_t c = 0; c < out.size(); ++c) out[c] += weight * value[c];
  }
  return sum;
}

Mask picked_blocks_mask(std::shared_ptr<const BlockPicks> picks, std::string name,
                        std::shared_ptr<const DroppedTerms> terms) {
  return Mask::term(
      std::make_shared<PickedBlocks>(std::move(picks), std::move(name), std::move(terms)));
}

}  // namespace attnscope
