#pragma once

#include <span>
#include <vector>

#include "core/base/checked_math.h"
#include "core/reduce/panel_reduction.h"
#include "core/stream/tile_backend.h"
#include "kernels/common/positive_features.h"
#include "kernels/common/workspace.h"
#include "kernels/cpu/keys/key_block_product.h"
#include "kernels/cpu/keys/key_products.h"
#include "kernels/cpu/keys/packed_head.h"
#include "kernels/cpu/row_sums.h"

namespace attnscope {

/// Key blocks that a row group of the tile unit meets before the next one does: few enough to stay
/// in the core's own cache, and so many that what a run costs beside its blocks is little.
inline constexpr int64_t kRunBlocks = 8;
/// Units of rows whose columns the tile unit's reductions add to at once.
inline constexpr int64_t kOpenUnits = 8;

/// The running sums of a row's PlaceMasses, in lanes by key index mod 16, which are added in double
/// and begin anew every kMaxRunKeys keys: whichever parts the keys come in, the bits are the same.
struct alignas(64) PlaceLanes {
  float same_position[kSumLanes];
  float band[kSumLanes];
  float local[kSumLanes];
};

/// True where multiplying again costs less than keeping the entries of a row until its sum is
/// known: it does on the tile unit, whose entries of a few rows fill more than a core's own cache.
inline bool emits_twice(const PackedFormat& format) {
  return format.products == PackedProducts::tiles;
}

/// Fills kBlockKeys entries of each row.
void fill_rows(float* first, int64_t rows, int64_t stride, float value);

/// One head on the CPU. Query rows are taken in row blocks of a few row groups; a row block passes
/// over K's key blocks once, so that all its groups find a key block in L2. How rows are split
/// among calls, row blocks and groups changes no bit of any result.
class CpuHead : public BoundHead {
 public:
  CpuHead(const AttentionProblem& problem, int64_t batch, int64_t head, const PackedFormat& format,
          const CpuKernels& kernels, const CpuKernels::Products& products, KeyKeeping keeping,
          int threads)
      : head_(problem, batch, head, format, kernels, products, keeping, threads),
        features_(problem, batch, head) {}
  /// Of at most kRegisterRows rows, whose products are there already.
  CpuHead(const AttentionProblem& problem, int64_t batch, int64_t head, const PackedFormat& format,
          const CpuKernels& kernels, const CpuKernels::Products& products,
          const KnownProducts& known)
      : head_(problem, batch, head, format, kernels, products, known),
        features_(problem, batch, head) {}

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

  /// See TileBackend::workspace_bytes.
  static int64_t workspace_bytes(const PackedFormat& format, int64_t num_keys, int64_t rows,
                                 int64_t cols, bool one_product);
  static int64_t outputs_workspace_bytes(const PackedFormat& format, int64_t num_keys, int64_t rows,
                                         int64_t width);

 private:
  /// Pieces of the workspace for one row block.
  struct Buffers {
    int64_t rows = 0;        ///< of a row block: groups · group_rows
    int64_t stash_rows = 0;  ///< of these, whose entries the stash has room for
    int64_t group_rows = 0;  ///< of a group at most
    BlockScratch scratch;
    float* queries = nullptr;    ///< [groups, group_rows · steps], see PackedFormat
    float* packing = nullptr;    ///< scratch of pack_queries
    float* bounds = nullptr;     ///< see RowGroup, [rows]
    bool* by_table = nullptr;    ///< see RowReferences, [rows]
    RowSum* sums = nullptr;      ///< [rows]
    float* factors = nullptr;    ///< entries to weights, [rows]
    float* exponents = nullptr;  ///< what linear features were divided by, as powers of 2, [rows]
    /// Entries of the call's rows of the row block, […, stash_stride]; of the tile unit those of
    /// kRunBlocks key blocks at a time.
    float* stash = nullptr;
    int64_t stash_stride = 0;
    RowLanes* lanes = nullptr;     ///< [rows]
    PlaceLanes* places = nullptr;  ///< [rows]
    float* share_rows = nullptr;   ///< whole rows that are reduced in parts, [kTileUnitRows, …]
    int64_t share_stride = 0;
  };
  /// A row block: rows [first, first + index.size()) of the call.
  struct Rows {
    int64_t first = 0;
    std::span<const int64_t> index;
    int64_t group_rows = 0;

    int64_t count() const { return static_cast<int64_t>(index.size()); }
    int64_t groups() const { return ceil_div(count(), group_rows); }
    std::span<const int64_t> group(int64_t g) const {
      const auto begin = static_cast<size_t>(g * group_rows);
      return index.subspan(begin, std::min(static_cast<size_t>(group_rows), index.size() - begin));
    }
  };
  /// Where the entries of a row group and a key block are computed so that they come to the stash:
  /// there, or, as the kernels take whole groups and the stash has the rows of the call alone, in
  /// scratch.entries.
  class StashPlace {
   public:
    /// `stash`: of the block's first key in the group's first row; null: not wanted there. Sets the
    /// product's output.
    StashPlace(float* stash, int64_t rows, KeyBlockProduct& meeting, const Buffers& buffers);
    /// Brings entries that were computed in scratch.
    void keep() const;

   private:
    float* stash_;
    int64_t stride_, rows_;
    const float* scratch_ = nullptr;
  };
  /// Emission of a rectangle, whatever row block is at work.
  struct Rectangle {
    std::span<const RowNorm> norms;
    IndexRange keys;
    Quantity quantity = Quantity::weights;
    const EmitTarget& target;
  };

  /// `one_product`: with a stash of `cols` keys.
  static Buffers take_buffers(const PackedFormat& format, int64_t num_keys, int64_t rows,
                              int64_t cols, bool one_product, Workspace& workspace);
  Rows load(const QueryBlock& queries, int64_t first, int64_t rows, const Buffers& buffers) const;
  RowGroup group_of(const Rows& rows, int64_t group, const Buffers& buffers) const;
  KeyBlockProduct meet(const Rows& rows, int64_t group, int64_t block, KeyProducts& products,
                       const Buffers& buffers) const;

  /// The exponent of the power of 2 that a linear row's entries are relative to; `row` counts
  /// within the row block.
  float feature_reference(int64_t row, const Buffers& buffers) const;
  bool is_masked_out(int64_t query, const Buffers& buffers) const;
  bool is_too_small(const RowSum& sum, int64_t query, const Buffers& buffers) const;
  void sum_rows(const Rows& rows, IndexRange stash_blocks, bool with_moments, KeyProducts& products,
                const Buffers& buffers, std::span<RowNorm> norms) const;
  void start_sums(const Rows& rows, const Buffers& buffers) const;
  /// Leaves the entries that are wanted in the stash, or, beside its blocks, in scratch.entries.
  /// False: the mask leaves nothing of the block.
  bool sum_block(const Rows& rows, int64_t group, int64_t block, IndexRange stash_blocks,
                 WantedEntries wanted, KeyProducts& products, const Buffers& buffers) const;
  /// sum_block() for blocks of which no entries are wanted, several at once where that can be.
  void sum_blocks(const Rows& rows, int64_t group, IndexRange blocks, bool with_moments,
                  KeyProducts& products, const Buffers& buffers) const;
  void finish_sums(const Rows& rows, const Buffers& buffers, std::span<RowNorm> norms) const;
  void emit_stash(const Rows& rows, IndexRange stash_blocks, const Rectangle& rectangle,
                  const Buffers& buffers) const;
  void encode_runs(const EncodeRows& entries, int64_t first_row, IndexRange cols,
                   const Rectangle& rectangle) const;
  /// How many of `blocks`, from the first one on and all of them wanted, may go straight from a run
  /// kernel of the tile unit to where they are stored, and where their panels go, for the first row
  /// of the call.
  int64_t run_panels(IndexRange blocks, const Rectangle& rectangle,
                     std::span<std::byte*> panels) const;
  /// Stores a group's entries of some blocks, which go to `panels` where these are.
  void emit_blocks(const Rows& rows, int64_t group, IndexRange blocks, const Rectangle& rectangle,
                   std::span<std::byte*> panels, KeyProducts& products,
                   const Buffers& buffers) const;
  /// Those of the first blocks that a run kernel can do; returns how many.
  int64_t emit_run(const Rows& rows, int64_t group, IndexRange blocks, const Rectangle& rectangle,
                   std::span<std::byte*> panels, const Buffers& buffers) const;
  void emit_block(const Rows& rows, int64_t group, int64_t block, const Rectangle& rectangle,
                  KeyProducts& products, const Buffers& buffers) const;
  /// Softmax entries relative to the references of rows whose sums are known.
  void softmax_entries(const KeyBlockProduct& meeting, std::span<const int64_t> index,
                       RowReferences& references) const;
  void compute_entries(const Rows& rows, int64_t group, int64_t block, const Rectangle& rectangle,
                       KeyProducts& products, const Buffers& buffers) const;
  // Outputs (cpu_head_outputs.cpp). `totals`: [groups, panels, group_rows, kValueChannels], or of
  // one group.
  void add_outputs(const Rows& rows, int64_t group, int64_t block, const ValuePanels& values,
                   double* totals, KeyProducts& products, const Buffers& buffers) const;
  void write_outputs(const Rows& rows, std::span<const RowNorm> norms, const ValuePanels& values,
                     double* totals, const OutputTarget& target, const Buffers& buffers) const;
  [[noreturn]] void refuse_output(int64_t row, int64_t channel) const;
  // Reductions (cpu_head_reduce.cpp).

  /// Rows of a row block whose sums are known, and what they are reduced into; `first` is their
  /// first one's number in the panel.
  struct Reduced {
    const Rows& rows;
    int64_t first = 0;
    std::span<const SegmentRun> runs;
    PanelReduction& panel;
  };
  /// Entries of a row block's rows with some keys, from the first of these on.
  struct KeyPart {
    IndexRange keys;
    const float* entries = nullptr;
    int64_t stride = 0;
    int64_t first_row = 0;  ///< of the row block: the first that has entries

    const float* row(int64_t row) const { return entries + (row - first_row) * stride; }
  };
  /// Those of one row.
  struct RowPart {
    const float* entries = nullptr;
    float factor = 0;
    IndexRange keys;
  };
  void fill_sigmoid(const Rows& rows, KeyProducts& products, const Buffers& buffers) const;
  void reduce_stash(const Reduced& reduced, const Buffers& buffers) const;
  /// How many rows from the panel's row `first` on, at most `most` and one at least, reduce_twice
  /// takes at once.
  int64_t rows_together(const PanelReduction& panel, int64_t first, int64_t most) const;
  void reduce_twice(const Reduced& reduced, KeyProducts& products, const Buffers& buffers) const;
  RowReferences references_of(const Rows& rows, int64_t group, const Buffers& buffers) const;
  /// Entries of a group with some key blocks, to `out`, rows of stash_stride.
  void fill_part(const Rows& rows, int64_t group, IndexRange blocks, float* out,
                 KeyProducts& products, const Buffers& buffers) const;
  /// reduce_twice where columns are all that is wanted: most entries are kept nowhere.
  void reduce_columns(const Reduced& reduced, KeyProducts& products, const Buffers& buffers) const;
  /// Adds a group's weights with some key blocks to their columns.
  void add_columns(const Reduced& reduced, int64_t group, IndexRange blocks, KeyProducts& products,
                   const Buffers& buffers) const;
  /// Rows of the row block from `row` on that belong to one unit of the panel; empty: no more.
  static IndexRange next_unit(const Reduced& reduced, int64_t row);
  /// Rows of one unit with some keys; all parts of a row come in their order.
  void reduce_part(const Reduced& reduced, IndexRange rows, const KeyPart& part,
                   const Buffers& buffers) const;
  void add_diagonals(ReducedRows rows, int64_t first, PanelReduction& panel) const;
  void reduce_row(const Reduced& reduced, int64_t row, const KeyPart& part,
                  const Buffers& buffers) const;
  void add_places(const RowPart& row, LatentCoord place, int64_t band, PlaceLanes& lanes,
                  PlaceMasses& masses) const;
  void add_offsets(const RowPart& row, LatentCoord place, PanelReduction& panel) const;
  void keep_share_row(const Reduced& reduced, int64_t row, const KeyPart& part,
                      const Buffers& buffers) const;
  /// After the last part of a unit's rows.
  void finish_rows(const Reduced& reduced, IndexRange rows, const Buffers& buffers) const;
  [[noreturn]] void refuse_row(int64_t row) const;

  IndexRange all_blocks() const { return {0, head_.num_blocks()}; }

  const PackedHead head_;
  const PositiveFeatures features_;
};

}  // namespace attnscope
