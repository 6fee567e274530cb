#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/index_range.h"
#include "core/problem/attention_problem.h"
#include "core/stream/weight_code.h"

namespace attnscope {

/// A row's normaliser, kept in two parts because exp(s − lse) with one float32 lse loses
/// |lse|·6e-8. Softmax: Σ_j exp(s_j) = sum · 2^exponent with sum in [1, 2) and
/// exponent an integer. Linear scores: Σ_j φ(q)·φ(k_j) in the same form. A fully masked row (or a
/// linear row whose sum is 0) has sum 0. With sinks exp(z) is part of it, and masked rows have that
/// alone.
struct RowNorm {
  double sum = 0;
  int64_t exponent = 0;
  /// ln of the normaliser; −inf for a fully masked row.
  double lse() const;
  /// sum·2^exponent = value; value ≥ 0.
  static RowNorm from_value(double value);
  /// Of a row with one logit more; −∞ leaves it as it is, in all bits.
  RowNorm with_logit(double logit) const;
};

class DeviceFacet;
class PanelReduction;
struct ValuePanels;

/// Some query rows of the bound head: `data` holds them packed, [index.size(), d] in the problem's
/// storage dtype; `index` says which rows of the sequence they are, ascending. Borrowed. `data` may
/// be null where the head fetches them itself (BoundHead::fetches_queries).
struct QueryBlock {
  const std::byte* data = nullptr;
  std::span<const int64_t> index;

  /// Rows [first, first + count), each of `row_bytes` bytes.
  QueryBlock part(size_t first, size_t count, int64_t row_bytes) const {
    const auto offset = static_cast<int64_t>(first) * row_bytes;
    return {data == nullptr ? nullptr : data + offset, index.subspan(first, count)};
  }
};

/// Where a rectangle of entries goes. Column c of the rectangle (counted from its first key)
/// belongs to column block c / block_cols; entry (r, c) stands at element
/// r·row_stride + c % block_cols of blocks[c / block_cols]. A null block is not wanted and not
/// computed (the mask leaves it empty, so its entries are 0). Borrowed.
struct EmitTarget {
  std::span<std::byte* const> blocks;
  int64_t block_cols = 0;
  int64_t row_stride = 0;
  Encoding encoding = Encoding::f32;
};

/// Where outputs go: channel c of row r stands at data[r·row_stride + c]. Borrowed.
struct OutputTarget {
  float* data = nullptr;
  int64_t row_stride = 0;
};

/// One head made ready: K packed for the backend. Immutable and thread-safe: several threads may
/// call it at once, each with a workspace of its own.
class BoundHead {
 public:
  virtual ~BoundHead() = default;

  /// True where the head takes query rows from where the problem has them, by their numbers, so
  /// that nobody need read them (read_query_rows in panel.h).
  virtual bool fetches_queries() const { return false; }

  /// The normalisers of the rows over all keys. norms has one entry a row. Not for sigmoid.
  virtual void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                         std::span<std::byte> workspace) const = 0;

  /// Any rectangle on its own: weights (norms are those of row_norms; empty for sigmoid) or logits
  /// (norms empty). Entries are bit for bit those of emit_panel.
  virtual void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
                    Quantity quantity, const EmitTarget& target,
                    std::span<std::byte> workspace) const = 0;

  /// row_norms and the weights of `keys` from a single product Q·Kᵀ.
  virtual void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                          const EmitTarget& target, std::span<std::byte> workspace) const = 0;

  /// Takes what the panel asks for from the weights of its rows [first, first +
  /// queries.index.size()). Rows of a panel are given in order, all of them
  /// at once where TileBackend::whole_panel_rows() says so. The workspace is that of emit_panel
  /// over all keys.
  virtual void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
                      std::span<std::byte> workspace) const = 0;

  /// The attention outputs of the rows, Σ_j P_ij·V_j over all keys, and the rows' norms on the way
  /// (empty for sigmoid). `values` is the V of this head, all of it finite. Fully masked rows are
  /// 0. The workspace is that of TileBackend::outputs_workspace_bytes. Sums are float32 over blocks
  /// of 256 keys and double across them, in index order. Throws Error(value) where float32 cannot
  /// hold a product.
  virtual void outputs(const QueryBlock& queries, std::span<RowNorm> norms,
                       const ValuePanels& values, const OutputTarget& target,
                       std::span<std::byte> workspace) const = 0;
};

/// The seam to the kernels. A backend does tile arithmetic only; what order, masks and products
/// mean is core's. Thread-safe.
class TileBackend {
 public:
  virtual ~TileBackend() = default;

  /// "cpu", "reference" …: what the export's `backend` attribute says. Backends that can differ in
  /// a result's bits have different names.
  virtual std::string name() const = 0;
  /// The name of what computes this problem's heads, where that depends on it (on its type of
  /// tensors, say): the name that results of the problem are recorded under.
  virtual std::string name_for(const AttentionProblem&) const { return name(); }
  /// For people: "cpu (AVX-512, 2 threads)".
  virtual std::string description() const = 0;
  /// How many threads may usefully call a bound head at once.
  virtual int workers() const = 0;

  /// Bytes that bind() keeps for a head, and more that it needs while it runs.
  struct BindCost {
    int64_t resident = 0;
    int64_t transient = 0;
  };
  virtual BindCost bind_cost(const AttentionProblem& problem) const = 0;
  /// Workspace bytes a call with up to `rows` rows needs; emit_panel of `cols` keys when
  /// one_product, else row_norms and emit.
  virtual int64_t workspace_bytes(const AttentionProblem& problem, int64_t rows, int64_t cols,
                                  bool one_product) const = 0;
  /// Workspace bytes of BoundHead::outputs with up to `rows` rows; the problem must have V.
  virtual int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const = 0;

  /// Rows of a panel at most where reduce() must be given whole panels at once, as a device wants
  /// that is filled by many rows; 0: any number of rows a call.
  virtual int64_t whole_panel_rows() const { return 0; }

  /// Units of rows (core/reduce/panel_reduction.h) whose columns reduce() adds to at once.
  virtual int64_t open_units() const { return 1; }

  /// Reads and packs K of one head. The problem must outlive the result.
  virtual std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                          int64_t head) const = 0;

  /// The backend's abilities besides tiles where it computes on a device of its own
  /// (core/stream/device_facet.h); null: it has none.
  virtual const DeviceFacet* device() const { return nullptr; }
};

}  // namespace attnscope
