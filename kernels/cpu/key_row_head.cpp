#include "kernels/cpu/key_row_head.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <numbers>

#include "core/base/aligned_vector.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/cpu/keys/key_row_products.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "kernels/cpu/packing/row_packer.h"
#include "kernels/cpu/simd/key_rows.h"

namespace attnscope {
namespace {

static_assert(kRegisterRows <= kKeyRowTile && kRegisterRows <= kTileUnitRows);

/// The rows of a call as KeyRows wants them.
struct QueryColumns {
  AlignedVector<float> columns;
  float longest = 0;  ///< row

  QueryColumns(const PackedFormat& format, const QueryRows& rows) {
    const auto size = [](int64_t count) { return static_cast<size_t>(count); };
    const int64_t steps = format.steps();
    AlignedVector<float> group(size(kTileUnitRows * steps));
    AlignedVector<float> scratch(size(pack_scratch_floats(format)));
    float exponents[kTileUnitRows];
    float lengths[kTileUnitRows];
    // As a row group is packed: the same bits.
    const FlushDenormals flush;
    pack_queries(format, rows, {group.data(), exponents, lengths}, scratch.data());
    longest = *std::max_element(lengths, lengths + rows.count);
    columns.resize(size(kKeyRowTile * steps));
    const int64_t pairs = steps / format.parts();
    for (int64_t part = 0; part < format.parts(); ++part) {
      const float* const rows_of_part = group.data() + part * kTileUnitRows * pairs;
      transpose_elements(reinterpret_cast<const std::byte*>(rows_of_part), pairs * 4, kKeyRowTile,
                         pairs, columns.data() + part * pairs * kKeyRowTile);
    }
  }

  static int64_t bytes(const PackedFormat& format) {
    return ((kTileUnitRows + kKeyRowTile) * format.steps() + pack_scratch_floats(format)) * 4;
  }
};

}  // namespace

KeyRowHead::KeyRowHead(const AttentionProblem& problem, int64_t batch, int64_t head,
                       const PackedFormat& format, const CpuKernels& kernels,
                       const CpuKernels::Products& products, int threads)
    : problem_(problem),
      batch_(batch),
      head_(head),
      format_(format),
      kernels_(kernels),
      products_(products),
      threads_(threads) {
  assert(format.products == PackedProducts::tiles);
}

int64_t KeyRowHead::bytes(const PackedFormat& format, const HeadTensor& k, int64_t rows,
                          int threads) {
  return rows * (key_row_stride(k.tokens()) * 4 + k.row_bytes()) + QueryColumns::bytes(format) +
         key_row_bytes(format, k, threads);
}

int64_t KeyRowHead::stride() const { return key_row_stride(problem_.num_keys()); }

void KeyRowHead::multiply(const QueryBlock& queries) const {
  const auto rows = static_cast<int64_t>(queries.index.size());
  assert(rows <= kRegisterRows);
  const std::byte* const end = queries.data + rows * problem_.q().row_bytes();
  if (std::equal(queries.data, end, kept_.queries.begin(), kept_.queries.end())) return;
  kept_.queries.clear();
  if (rows > kept_.rows) {
    kept_ = {};
    kept_.products = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(rows * stride()));
    kept_.rows = rows;
  }
  const QueryColumns columns(format_, {queries.data, rows});
  // Below, whoever compares |t| with kMaxTableExponent by Cauchy and Schwarz finds all rows fit.
  const double factor = problem_.scale(head_) * std::numbers::log2e * double{columns.longest};
  const KeyRowQueries asked{columns.columns.data(), rows,
                            0.99 * double{kMaxTableExponent} / factor};
  const KeyRowSource source{.format = format_,
                            .k = problem_.k(),
                            .batch = batch_,
                            .head = problem_.kv_head(head_),
                            .kernels = kernels_,
                            .multiply = products_.key_rows,
                            .threads = threads_};
  kept_.largest_key = multiply_key_rows(source, asked, kept_.products.get(), stride());
  kept_.queries.assign(queries.data, end);
}

template <typename Call>
void KeyRowHead::with_products(const QueryBlock& queries, const Call& call) const {
  const std::lock_guard turn(turn_);
  multiply(queries);
  call(CpuHead(problem_, batch_, head_, format_, kernels_, products_,
               KnownProducts{kept_.products.get(), stride(), kept_.largest_key}));
}

void KeyRowHead::row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                           std::span<std::byte> workspace) const {
  with_products(queries, [&](const CpuHead& head) { head.row_norms(queries, norms, workspace); });
}

void KeyRowHead::emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
                      Quantity quantity, const EmitTarget& target,
                      std::span<std::byte> workspace) const {
  with_products(queries, [&](const CpuHead& head) {
    head.emit(queries, norms, keys, quantity, target, workspace);
  });
}

void KeyRowHead::emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                            const EmitTarget& target, std::span<std::byte> workspace) const {
  with_products(queries, [&](const CpuHead& head) {
    head.emit_panel(queries, norms, keys, target, workspace);
  });
}

void KeyRowHead::reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
                        std::span<std::byte> workspace) const {
  with_products(queries,
                [&](const CpuHead& head) { head.reduce(queries, first, panel, workspace); });
}

void KeyRowHead::outputs(const QueryBlock& queries, std::span<RowNorm> norms,
                         const ValuePanels& values, const OutputTarget& target,
                         std::span<std::byte> workspace) const {
  with_products(queries, [&](const CpuHead& head) {
    head.outputs(queries, norms, values, target, workspace);
  });
}

}  // namespace attnscope
