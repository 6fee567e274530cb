#include "core/mask/mask_cover.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// Keys that are looked at together.
constexpr int64_t kPieceKeys = 1024;

/// Blocks of keys of a row of blocks, and which of them are known to keep something.
class BlockCover {
 public:
  BlockCover(const Mask& mask, int64_t batch, int64_t head, int64_t num_keys, int64_t block)
      : mask_(mask), batch_(batch), head_(head), num_keys_(num_keys), block_(block) {}

  std::vector<uint8_t> find(IndexRange queries) {
    const int64_t blocks = ceil_div(num_keys_, block_);
    for (int64_t b = 0; b < blocks; ++b) {
      const TileClass what = mask_.classify(batch_, head_, queries,
                                            {b * block_, std::min((b + 1) * block_, num_keys_)});
      kept_.push_back(what == TileClass::full ? 1 : 0);
      if (what == TileClass::mixed) unknown_.push_back(b);
    }
    for (int64_t query = queries.begin; query < queries.end && !unknown_.empty(); ++query) {
      look_at(query);
    }
    return std::move(kept_);
  }

 private:
  /// Looks at the entries of a row: conjunctions cannot tell from their terms alone.
  void look_at(int64_t query) {
    size_t left = 0;
    for (const int64_t b : unknown_) {
      const IndexRange keys{b * block_, std::min((b + 1) * block_, num_keys_)};
      const bool any = keeps_any(query, keys);
      if (any) kept_[static_cast<size_t>(b)] = 1;
      if (!any) unknown_[left++] = b;
    }
    unknown_.resize(left);
  }

  bool keeps_any(int64_t query, IndexRange keys) {
    for (int64_t key = keys.begin; key < keys.end;) {
      if (query != query_ || !piece_.contains(key)) read(query, key);
      const int64_t end = std::min(keys.end, piece_.end);
      const auto first = bias_.begin() + (key - piece_.begin);
      if (std::any_of(first, first + (end - key), [](float b) { return b > kMasked; })) return true;
      key = end;
    }
    return false;
  }

  void read(int64_t query, int64_t key) {
    query_ = query;
    piece_ = {key, std::min(key + kPieceKeys, num_keys_)};
    bias_.resize(static_cast<size_t>(piece_.size()));
    mask_.fill_bias(batch_, head_, {&query, 1}, piece_, bias_.data(), piece_.size());
  }

  const Mask& mask_;
  const int64_t batch_, head_, num_keys_, block_;
  std::vector<uint8_t> kept_;
  std::vector<int64_t> unknown_;
  int64_t query_ = -1;
  IndexRange piece_;  ///< of the row `query_`, whose biases are there
  std::vector<float> bias_;
};

}  // namespace

std::vector<uint8_t> kept_blocks(const Mask& mask, int64_t batch, int64_t head, IndexRange queries,
                                 int64_t num_keys, int64_t block) {
  return BlockCover(mask, batch, head, num_keys, block).find(queries);
}

}  // namespace attnscope
