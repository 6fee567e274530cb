#pragma once

#include <cstdint>

#include "core/mask/bit_rows.h"
#include "core/mask/mask_term.h"

namespace attnscope {

/// A condition told block by block, in blocks of one size from the first token on. Immutable and
/// thread-safe like every MaskTerm.
class BlockGridTerm : public MaskTerm {
 public:
  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override;
  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override;
  std::string describe() const override;

 protected:
  BlockGridTerm(int64_t block_queries, int64_t block_keys)
      : block_queries_(block_queries), block_keys_(block_keys) {}

  /// The blocks of a head's map, 1 = kept: [query blocks, key blocks].
  virtual const BitRows& bits_of(int64_t batch, int64_t head) const = 0;

  const int64_t block_queries_, block_keys_;
};

}  // namespace attnscope
