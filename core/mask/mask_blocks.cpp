#include "core/mask/mask_blocks.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

constexpr int64_t kWordBits = 64;

/// One bit a block, so that a mask of many small blocks stays small (an 8-byte prefix sum a block
/// would not) and 64 blocks are classified at once.
class BlocksTerm : public MaskTerm {
 public:
  explicit BlocksTerm(const BlockMask& mask)
      : heads_(mask.heads),
        query_blocks_(mask.query_blocks),
        key_blocks_(mask.key_blocks),
        block_queries_(mask.block_queries),
        block_keys_(mask.block_keys),
        row_words_(ceil_div(mask.key_blocks, kWordBits)),
        words_(static_cast<size_t>(mask.heads * mask.query_blocks * row_words_)) {
    const uint8_t* bit = mask.bits.data();
    uint64_t* row = words_.data();
    for (int64_t r = 0; r < heads_ * query_blocks_; ++r, row += row_words_) {
      for (int64_t b = 0; b < key_blocks_; ++b) {
        row[b / kWordBits] |= uint64_t{*bit++ != 0} << (b % kWordBits);
      }
    }
  }

  TileClass classify(int64_t, int64_t head, IndexRange queries, IndexRange keys) const override {
    const IndexRange rows{queries.begin / block_queries_, (queries.end - 1) / block_queries_ + 1};
    const int64_t first = keys.begin / block_keys_;
    const int64_t last = (keys.end - 1) / block_keys_;
    bool any_kept = false, any_masked = false;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const uint64_t* words = row_words(head, row);
      for (int64_t w = first / kWordBits; w <= last / kWordBits; ++w) {
        uint64_t wanted = ~uint64_t{0};
        if (w == first / kWordBits) wanted &= ~uint64_t{0} << (first % kWordBits);
        if (w == last / kWordBits) wanted &= ~uint64_t{0} >> (kWordBits - 1 - last % kWordBits);
        any_kept |= (words[w] & wanted) != 0;
        any_masked |= (~words[w] & wanted) != 0;
      }
      if (any_kept && any_masked) return TileClass::mixed;
    }
    return any_kept ? TileClass::full : TileClass::empty;
  }

  void add_bias(int64_t, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    for (int64_t query : queries) {
      const uint64_t* words = row_words(head, query / block_queries_);
      for (int64_t key = keys.begin; key < keys.end;) {
        const int64_t block = key / block_keys_;
        const int64_t past = std::min(keys.end, (block + 1) * block_keys_);
        const bool kept = (words[block / kWordBits] >> (block % kWordBits) & 1) != 0;
        if (!kept) std::fill(out + (key - keys.begin), out + (past - keys.begin), kMasked);
        key = past;
      }
      out += row_stride;
    }
  }

  std::string describe() const override {
    return "blocks:" + std::to_string(block_queries_) + "x" + std::to_string(block_keys_);
  }

  void check_shape(int64_t, int64_t heads, int64_t queries, int64_t keys) const override {
    if (heads_ != 1 && heads_ != heads) {
      throw usage_error("block mask: has " + std::to_string(heads_) + " heads, expected 1 or " +
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
  const uint64_t* row_words(int64_t head, int64_t block_row) const {
    const int64_t h = heads_ == 1 ? 0 : head;
    return words_.data() + (h * query_blocks_ + block_row) * row_words_;
  }

  const int64_t heads_, query_blocks_, key_blocks_, block_queries_, block_keys_;
  const int64_t row_words_;
  std::vector<uint64_t> words_;
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
  return std::make_shared<BlocksTerm>(blocks);
}

}  // namespace attnscope
