#include "core/mask/block_causal.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

class BlockCausalTerm : public MaskTerm {
 public:
  explicit BlockCausalTerm(int64_t block) : block_(block) {}

  TileClass classify(int64_t, int64_t, IndexRange queries, IndexRange keys) const override {
    if (keys.begin / block_ > (queries.end - 1) / block_) return TileClass::empty;
    return (keys.end - 1) / block_ <= queries.begin / block_ ? TileClass::full : TileClass::mixed;
  }

  void add_bias(int64_t, int64_t, std::span<const int64_t> queries, IndexRange keys, float* out,
                int64_t row_stride) const override {
    for (const int64_t query : queries) {
      const int64_t before_block = query - query % block_;
      // The last block may reach beyond the largest number.
      const bool all = keys.end - before_block <= block_;
      const int64_t past = all ? keys.end : std::max(before_block + block_, keys.begin);
      std::fill(out + (past - keys.begin), out + keys.size(), kMasked);
      out += row_stride;
    }
  }

  std::string describe() const override { return "block_causal:" + std::to_string(block_); }
  void check_shape(int64_t, int64_t, int64_t, int64_t) const override {}

 private:
  const int64_t block_;
};

}  // namespace

Mask block_causal_mask(int64_t block) {
  if (block < 1) {
    throw usage_error("mask block_causal:" + std::to_string(block) +
                      ": a block has at least 1 token");
  }
  return Mask::term(std::make_shared<BlockCausalTerm>(block));
}

}  // namespace attnscope
