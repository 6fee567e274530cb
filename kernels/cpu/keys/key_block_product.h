#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/keys/key_products.h"
#include "kernels/cpu/keys/packed_head.h"
#include "kernels/cpu/simd/cpu_kernels.h"

namespace attnscope {

/// Scratch of a thread for one block at a time; 64-byte aligned pieces of its workspace.
struct BlockScratch {
  float* bias = nullptr;       ///< [rows of a group, kBlockKeys]
  float* edge_bias = nullptr;  ///< [kBlockKeys]
  float* entries = nullptr;    ///< [rows of a group, kBlockKeys]
};

/// A row group of at most kMaxGroupRows rows, packed. Borrowed.
struct RowGroup {
  std::span<const int64_t> index;  ///< which rows of the sequence they are
  const float* packed = nullptr;
  const bool* by_table = nullptr;  ///< see RowReferences; one a row that is computed, or null
  const float* bounds = nullptr;   ///< the largest |t| that products can give; beside by_table
};

/// How many of `blocks`, from the first one on, the tile unit's run kernels can do for the group:
/// all keys are there for all of its rows, which take their powers from the table.
int64_t blocks_of_run(const PackedHead& head, const RowGroup& group, IndexRange blocks);

/// Those blocks for the group, whose entries are relative to `references`, one a computed row.
BlockRun make_run(const PackedHead& head, const RowGroup& group, IndexRange blocks,
                  const float* references);

/// One row group meets one key block: asks the mask what is left of the rectangle, and computes its
/// entries where it is told to. A short-lived view; not thread-safe.
class KeyBlockProduct {
 public:
  /// Uses scratch.bias and scratch.edge_bias until destruction, and what `source` has of the block,
  /// for which it is asked unless this is empty().
  KeyBlockProduct(const PackedHead& head, KeyProducts& source, const BlockScratch& scratch,
                  const RowGroup& group, int64_t block);

  /// Rows that are computed: those of the group, and what the kernels need beside them.
  int64_t rows() const { return product_.rows; }

  /// The mask leaves nothing.
  bool empty() const { return product_.panels == 0; }

  /// Every key is masked for this row of the group.
  bool excludes_row(int64_t row) const;

  /// Where entries go: rows() rows of kBlockKeys entries, 64-byte aligned.
  void set_output(float* out, int64_t stride) {
    product_.out = out;
    product_.out_stride = stride;
  }

  /// The entries named; masked and missing keys are 0 (logits: −inf). Takes rows.by_table from the
  /// group.
  void softmax(RowReferences& rows) const;
  /// Only the sums of softmax(); what the output holds afterwards is not said.
  void sum_softmax(RowReferences& rows) const;
  void linear(RowReferences& rows) const;
  void sigmoid() const;
  void logits() const;
  /// Raw products, as the output of their own; of capped logits those that make them.
  void products() const;
  /// The largest exponents of the rows (see CpuKernels::exponent_maxima); leaves products().
  void exponent_maxima(float (&maxima)[kMaxGroupRows]) const;
  /// softmax() from the products() in the output: the same bits, and right also where products far
  /// below 0 make softmax()'s sums unsound.
  void softmax_of_products(RowReferences& rows) const;

 private:
  void softmax_of(const ProductBlock& product, RowReferences& rows) const;
  void take_mask(const PackedHead& head, const BlockScratch& scratch, std::span<const int64_t> rows,
                 IndexRange keys);

  const PackedHead& head_;
  ProductBlock product_;
  KeyProducts::Products streamed_;  ///< the raw products, where K is streamed
  BlockBias bias_;
  bool plain_ = false;  ///< no mask, no bias, every key exists: the fused kernel can do it
  const RowGroup group_;
};

}  // namespace attnscope
