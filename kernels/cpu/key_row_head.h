#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/cpu/cpu_head.h"

namespace attnscope {

/// One head on the tile unit for a few rows that do not pay for packing K: a call reads K once, as
/// it is stored, and keeps the rows' raw products with all keys; once they are there, so is the
/// length of the longest key that the rows' powers depend on, and the rest is CpuHead's. Products
/// are kept for calls with the same rows. Calls take turns, so that the head's memory is that of
/// one. Keys that are not finite are refused: Error(value) names the first.
class KeyRowHead : public BoundHead {
 public:
  KeyRowHead(const AttentionProblem& problem, int64_t batch, int64_t head,
             const PackedFormat& format, const CpuKernels& kernels,
             const CpuKernels::Products& products, int threads);

  void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                 std::span<std::byte> workspace) const override;
  void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
            Quantity quantity, const EmitTarget& target,
            std::span<std::byte> workspace) const override;
  void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                  const EmitTarget& target, std::span<std::byte> workspace) const override;
  void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
              std::span<std::byte> workspace) const override;
  void outputs(const QueryBlock& queries, std::span<RowNorm> norms, const ValuePanels& values,
               const OutputTarget& target, std::span<std::byte> workspace) const override;

  /// Bytes that one holds for calls of up to `rows` rows.
  static int64_t bytes(const PackedFormat& format, const HeadTensor& k, int64_t rows, int threads);

 private:
  /// The products that the last call left, for calls with the same queries.
  struct Kept {
    std::vector<std::byte> queries;  ///< whose products they are
    std::unique_ptr<float[]> products;
    int64_t rows = 0;  ///< that there is room for
    float largest_key = 0;
  };

  /// Calls call(head) with a head that knows the products of these queries.
  template <typename Call>
  void with_products(const QueryBlock& queries, const Call& call) const;
  void multiply(const QueryBlock& queries) const;
  int64_t stride() const;

  const AttentionProblem& problem_;
  const int64_t batch_;
  const int64_t head_;
  const PackedFormat format_;
  const CpuKernels& kernels_;
  const CpuKernels::Products products_;
  const int threads_;
  mutable std::mutex turn_;
  mutable Kept kept_;
};

}  // namespace attnscope
