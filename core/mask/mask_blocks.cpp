#include "core/mask/mask_blocks.h"

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/block_grid_term.h"

namespace attnscope {
namespace {

/// Blocks in memory, the same for every batch item.
class StoredBlocks : public BlockGridTerm {
 public:
  explicit StoredBlocks(const BlockMask& mask)
      : BlockGridTerm(mask.block_queries, mask.block_keys),
        query_blocks_(mask.query_blocks),
        key_blocks_(mask.key_blocks) {
    std::span<const uint8_t> left(mask.bits);
    for (int64_t head = 0; head < mask.heads; ++head) {
      BitRows& bits = heads_.emplace_back(query_blocks_, key_blocks_);
      for (int64_t row = 0; row < query_blocks_; ++row) {
        bits.fill_row(row, left.first(static_cast<size_t>(key_blocks_)));
        left = left.subspan(static_cast<size_t>(key_blocks_));
      }
    }
  }

  void check_shape(int64_t, int64_t heads, int64_t queries, int64_t keys) const override {
    const auto own = static_cast<int64_t>(heads_.size());
    if (own != 1 && own != heads) {
      throw usage_error("block mask: has " + std::to_string(own) + " heads, expected 1 or " +
                        std::to_string(heads));
    }
    check_axis(query_blocks_, block_queries_, queries, "queries");
    check_axis(key_blocks_, block_keys_, keys, "keys");
  }

 private:
  static void check_axis(int64_t blocks, int64_t block, int64_t extent, const char* axis) {
    if (blocks == ceil_div(extent, block)) return;
    throw usage_error("block mask: " + std::to_string(blocks) + " blocks of " +
                      std::to_string(block) + " do not cover " + std::to_string(extent) + " " +
                      axis + " (expected " + std::to_string(ceil_div(extent, block)) + " blocks)");
  }
  const BitRows& bits_of(int64_t, int64_t head) const override {
    return heads_[heads_.size() == 1 ? 0 : static_cast<size_t>(head)];
  }

  const int64_t query_blocks_, key_blocks_;
  std::vector<BitRows> heads_;
};

}  // namespace

MaskTermPtr blocks_term(const BlockMask& blocks) {
  const bool positive = blocks.heads > 0 && blocks.query_blocks > 0 && blocks.key_blocks > 0 &&
                        blocks.block_queries > 0 && blocks.block_keys > 0;
  if (!positive) throw usage_error("block mask: every extent must be at least 1");
  const int64_t shape[] = {blocks.heads, blocks.query_blocks, blocks.key_blocks};
  const auto count = checked_count(shape);
  if (!count || *count != static_cast<int64_t>(blocks.bits.size())) {
    throw usage_error("block mask: " + std::to_string(blocks.heads) + "x" +
                      std::to_string(blocks.query_blocks) + "x" +
                      std::to_string(blocks.key_blocks) + " blocks need as many bits (got " +
                      std::to_string(blocks.bits.size()) + ")");
  }
  return std::make_shared<StoredBlocks>(blocks);
}

}  // namespace attnscope
