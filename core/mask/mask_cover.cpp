#include "core/mask/mask_cover.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// Looks at the entries: conjunctions cannot tell from their terms alone.
bool keeps_any(const Mask& mask, int64_t batch, int64_t head, IndexRange queries, IndexRange keys) {
  constexpr int64_t kPieceKeys = 1024;
  std::vector<float> bias(static_cast<size_t>(std::min(keys.size(), kPieceKeys)));
  for (int64_t query = queries.begin; query < queries.end; ++query) {
    for (int64_t first = keys.begin; first < keys.end; first += kPieceKeys) {
      const IndexRange piece{first, std::min(first + kPieceKeys, keys.end)};
      mask.fill_bias(batch, head, {&query, 1}, piece, bias.data(), piece.size());
      const auto past = bias.begin() + piece.size();
      if (std::any_of(bias.begin(), past, [](float b) { return b > kMasked; })) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<uint8_t> kept_blocks(const Mask& mask, int64_t batch, int64_t head, IndexRange queries,
                                 int64_t num_keys, int64_t block) {
  std::vector<uint8_t> bits;
  for (int64_t first = 0; first < num_keys; first += block) {
    const IndexRange keys{first, std::min(first + block, num_keys)};
    const TileClass what = mask.classify(batch, head, queries, keys);
    const bool any = what == TileClass::full ||
                     (what == TileClass::mixed && keeps_any(mask, batch, head, queries, keys));
    bits.push_back(any ? 1 : 0);
  }
  return bits;
}

}  // namespace attnscope
