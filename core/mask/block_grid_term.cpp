#include "core/mask/block_grid_term.h"

#include <algorithm>

#include "core/mask/masked_bias.h"

namespace attnscope {

TileClass BlockGridTerm::classify(int64_t batch, int64_t head, IndexRange queries,
                                  IndexRange keys) const {
  const auto blocks_of = [](IndexRange range, int64_t block) {
    return IndexRange{range.begin / block, (range.end - 1) / block + 1};
  };
  return bits_of(batch, head)
      .classify(blocks_of(queries, block_queries_), blocks_of(keys, block_keys_));
}

void BlockGridTerm::add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries,
                             IndexRange keys, float* out, int64_t row_stride) const {
  const BitRows& bits = bits_of(batch, head);
  for (int64_t query : queries) {
    const int64_t row = query / block_queries_;
    for (int64_t key = keys.begin; key < keys.end;) {
      const int64_t block = key / block_keys_;
      const int64_t past = std::min(keys.end, (block + 1) * block_keys_);
      if (!bits.at(row, block)) {
        std::fill(out + (key - keys.begin), out + (past - keys.begin), kMasked);
      }
      key = past;
    }
    out += row_stride;
  }
}

std::string BlockGridTerm::describe() const {
  return "blocks:" + std::to_string(block_queries_) + "x" + std::to_string(block_keys_);
}

}  // namespace attnscope
