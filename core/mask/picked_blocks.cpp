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
  PickedBlocks(std::shared_ptr<const DroppedTerms> blocks, std::string name)
      : blocks_(std::move(blocks)),
        picks_(blocks_->picks),
        name_(std::move(name)),
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

  const DroppedTerms* dropped() const override { return blocks_.get(); }

 private:
  static bool ascend(const TokenBlocks& blocks) {
    return std::is_sorted(blocks.of_token.begin(), blocks.of_token.end());
  }
  static IndexRange blocks_of(const TokenBlocks& blocks, IndexRange tokens) {
    return {blocks.of_token[static_cast<size_t>(tokens.begin)],
            blocks.of_token[static_cast<size_t>(tokens.end - 1)] + 1};
  }

  const std::shared_ptr<const DroppedTerms> blocks_;
  const std::shared_ptr<const BlockPicks> picks_;
  const std::string name_;
  const bool neighbours_;  ///< the tokens of each block of both sides
  BitRows bits_;
};

}  // namespace

double BlockPicks::density() const {
  double entries = 0, all = 0;
  for (int64_t i = 0; i < queries.size(); ++i) {
    const auto rows = static_cast<double>(queries.lengths[static_cast<size_t>(i)]);
    for (int64_t j = 0; j < keys.size(); ++j) {
      const double pairs = rows * static_cast<double>(keys.lengths[static_cast<size_t>(j)]);
      all += pairs;
      if (row(i)[j] != 0) entries += pairs;
    }
  }
  return entries / all;
}

double BlockPicks::visited() const {
  const auto dropped = std::count(kept.begin(), kept.end(), uint8_t{0});
  return 1 - static_cast<double>(dropped) / static_cast<double>(kept.size());
}

DroppedTerms::Weights DroppedTerms::weights(int64_t index, std::span<const double> query,
                                            double lse) const {
  const int64_t key_blocks = picks->keys.size();
  const int64_t query_block = picks->queries.of_token[static_cast<size_t>(index)];
  const uint8_t* const kept = picks->row(query_block);
  const double own = shared.empty() ? 0 : scale * dot(centre.data(), query);
  const auto width = static_cast<int64_t>(query.size());
  Weights result{{}, std::vector<double>(static_cast<size_t>(key_blocks))};
  double top = lse;
  for (int64_t j = 0; j < key_blocks; ++j) {
    if (kept[j] != 0) continue;
    double& logit = result.of_key[static_cast<size_t>(j)];
    logit = shared.empty() ? scale * dot(key_means.data() + j * width, query)
                           : own + shared[static_cast<size_t>(query_block * key_blocks + j)];
    top = std::max(top, logit);
  }
  result.sum.others = std::exp(lse - top);
  for (int64_t j = 0; j < key_blocks; ++j) {
    if (kept[j] != 0) continue;
    const auto block = static_cast<size_t>(j);
    result.of_key[block] = std::exp(result.of_key[block] - top);
    result.sum.mass += static_cast<double>(picks->keys.lengths[block]) * result.of_key[block];
  }
  return result;
}

void DroppedTerms::add(const Weights& weights, std::span<double> out) const {
  for (double& value : out) value *= weights.sum.others;
  for (size_t j = 0; j < weights.of_key.size(); ++j) {
    if (weights.of_key[j] == 0) continue;
    const double weight = static_cast<double>(picks->keys.lengths[j]) * weights.of_key[j];
    const double* const value = value_means.data() + j * out.size();
    for (size_t c = 0; c < out.size(); ++c) out[c] += weight * value[c];
  }
}

void DroppedTerms::add_branch(int64_t index, std::span<const double> query,
                              std::span<double> out) const {
  if (rest == BlockRest::coarse) {
    const auto block = static_cast<size_t>(picks->queries.of_token[static_cast<size_t>(index)]);
    for (size_t c = 0; c < out.size(); ++c) out[c] += gate * coarse[block * out.size() + c];
  }
  if (rest != BlockRest::linear) return;
  std::vector<double> shares(query.begin(), query.end());
  soft_shares(shares);
  // SLA's code adds this to the denominator.
  double sum = 1e-5;
  std::vector<double> values(out.size());
  for (size_t d = 0; d < shares.size(); ++d) {
    sum += shares[d] * linear_keys[d];
    for (size_t c = 0; c < out.size(); ++c) {
      values[c] += shares[d] * linear_values[d * out.size() + c];
    }
  }
  for (size_t c = 0; c < out.size(); ++c) out[c] += gate * values[c] / sum;
}

Mask picked_blocks_mask(std::shared_ptr<const DroppedTerms> blocks, std::string name) {
  return Mask::term(std::make_shared<PickedBlocks>(std::move(blocks), std::move(name)));
}

void soft_shares(std::span<double> numbers) {
  const double top = *std::max_element(numbers.begin(), numbers.end());
  double sum = 0;
  for (double& number : numbers) {
    number = std::exp(number - top);
    sum += number;
  }
  for (double& number : numbers) number /= sum;
}

}  // namespace attnscope
