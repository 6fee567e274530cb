#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/problem/attention_problem.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/cpu_packing.h"

namespace attnscope {

struct FreeAligned {
  void operator()(float* p) const { std::free(p); }
};
using PanelMemory = std::unique_ptr<float, FreeAligned>;

/// What a bound head is made of. Immutable once K is packed; thread-safe.
struct PackedHead {
  /// Packs K on up to `threads` threads. Borrows the problem and the kernels.
  PackedHead(const AttentionProblem& problem, int64_t batch, int64_t head,
             const PackedFormat& format, const CpuKernels& kernels,
             const CpuKernels::Products& products, int threads);

  int64_t num_keys() const { return problem.num_keys(); }
  int64_t num_blocks() const { return (num_keys() + kBlockKeys - 1) / kBlockKeys; }
  IndexRange keys_of_block(int64_t block) const {
    return intersect({block * kBlockKeys, (block + 1) * kBlockKeys}, {0, num_keys()});
  }

  const AttentionProblem& problem;
  const int64_t batch;
  const int64_t head;
  const PackedFormat format;
  const CpuKernels& kernels;
  const CpuKernels::Products products;
  const SplitFactor exponent_factor;  ///< scale·log₂(e)
  const SplitFactor logit_factor;     ///< scale
  PanelMemory panels;
  int key_exponent = 0;  ///< what the features of K were divided by (linear scores)
  /// The largest length of a key, infinite where float32 does not hold its square; known for the
  /// tile unit's format only.
  float largest_key = 0;
};

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
  const bool* by_table = nullptr;  ///< see RowReferences; one a row, or null
};

/// One row group meets one key block: asks the mask what is left of the rectangle, and computes its
/// entries where it is told to. A short-lived view; not thread-safe.
class KeyBlockProduct {
 public:
  /// Uses scratch.bias and scratch.edge_bias until destruction.
  KeyBlockProduct(const PackedHead& head, const BlockScratch& scratch, const RowGroup& group,
                  int64_t block);

  /// Rows that are computed: those of the group and what the kernels need beside them.
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
  /// Raw products, as the output of their own.
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
  BlockBias bias_;
  bool plain_ = false;  ///< no mask, no bias, every key exists: the fused kernel can do it
  const bool* by_table_ = nullptr;
};

}  // namespace attnscope
