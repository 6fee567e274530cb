#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/dtype.h"
#include "core/base/index_range.h"
#include "core/stream/value_panels.h"
#include "core/stream/weight_code.h"

namespace attnscope {

/// Keys of a packed panel of K: one vector step of the micro-kernel.
inline constexpr int64_t kPanelKeys = 32;
/// Keys of a block: what is classified against the mask, summed in float32, and kept in L2.
inline constexpr int64_t kBlockKeys = 256;
inline constexpr int64_t kBlockPanels = kBlockKeys / kPanelKeys;
/// Query rows that the micro-kernel holds in registers, and the tile unit in two tiles.
inline constexpr int64_t kRegisterRows = 12;
inline constexpr int64_t kTileUnitRows = 32;
/// Channels of a head at most that the tile unit is used for.
inline constexpr int64_t kMaxTileDim = 1024;
/// Query rows of a group at most: what meets a key block in one call. A multiple of both.
inline constexpr int64_t kMaxGroupRows = 96;
/// Row sums are formed in this many lanes (key index mod 16) on every instruction set, so that
/// their bits do not depend on the vector width.
inline constexpr int64_t kSumLanes = 16;
/// Logits beyond ±2²² (in base 2) cannot be told apart to a fraction of an octave in float32.
inline constexpr float kMaxExponent = 0x1p22f;

/// The product of one row group with one key block. `q` is the packed group and `k` the block's
/// first packed panel (see cpu_packing.h), both 64-byte aligned; `steps` the number of packed steps
/// along the head dimension. Results go to out[row · out_stride + key], `rows` rows of kBlockKeys
/// entries, 64-byte aligned; `out` may be null where only sums are wanted.
struct ProductBlock {
  const float* q = nullptr;
  const float* k = nullptr;
  int64_t steps = 0;
  /// kRegisterRows; of the tile unit a multiple of kTileUnitRows up to kMaxGroupRows.
  int64_t rows = kRegisterRows;
  /// For the tile unit: numbers that an element is the sum of (see cpu_packing.h).
  int64_t parts = 1;
  /// Bit p: panel p is computed. Entries of other panels are left as they are.
  uint32_t panels = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};

/// Exponentials are taken in base 2: x·log₂(e)·scale with the factor split in two, so that it is
/// known to 48 bits.
struct SplitFactor {
  float high = 0;
  float low = 0;
};

/// Of logits that are capped at ±C: what products are multiplied by before the tangent, and the
/// tangent after it.
struct CapFactors {
  SplitFactor into;  ///< scale/C
  SplitFactor back;  ///< C/scale
};

/// The input of a softmax block beside the product, and its results. One entry a row of a group.
struct RowReferences {
  /// Entries are 2^(t − reference), t = log₂(e)·logit; an integer.
  float references[kMaxGroupRows];
  /// Out: Σ of the block's entries, see is_sound_sum.
  float sums[kMaxGroupRows];
  /// True where moments are wanted; `moments` are out: Σ of entry·(t − reference).
  bool with_moments = false;
  float moments[kMaxGroupRows];
  /// One a row: powers of products without bias come from the table (exp2-inl.h), for which every
  /// |t| of the row must be at most kMaxTableExponent. Null: none do.
  const bool* by_table = nullptr;
};
/// See RowReferences::by_table.
inline constexpr float kMaxTableExponent = 0x1p15f;
/// See BlockRun::narrow.
inline constexpr float kMaxNarrowExponent = 120;

/// A block's sum and the entries behind it are to be trusted where the sum is sound. Otherwise the
/// reference was too low, a product was not finite, or one lay too far from 0 for all but
/// far_softmax_pass. An entry that went wrong is infinite or NaN, so that no sum hides it.
inline constexpr float kLargestSum = 0x1p64f;
inline bool is_sound_sum(float sum) { return sum >= 0 && sum <= kLargestSum; }

/// A row group and key blocks that follow each other, for the tile unit: all keys exist, none is
/// masked or biased, and all rows take their powers from the table. q, k, steps, parts and rows are
/// those of a ProductBlock; k is the first block's first panel.
struct BlockRun {
  const float* q = nullptr;
  const float* k = nullptr;
  int64_t steps = 0;
  int64_t parts = 1;
  int64_t rows = 0;
  int64_t blocks = 0;
  /// Every |t − reference| of all rows is at most kMaxNarrowExponent: the same bits in less time.
  bool narrow = false;
};

/// The rows' sums before a run and after it; one entry a row of the group.
struct RunSums {
  alignas(64) float references[kMaxGroupRows];
  /// The least sum of a block that does not end the run; 0 once a block has been added.
  alignas(64) float least[kMaxGroupRows];
  bool with_moments = false;
  /// Go on from what is there. `moments` where they are wanted.
  alignas(64) double totals[kMaxGroupRows];
  alignas(64) double moments[kMaxGroupRows];
};

/// Weights of a run, entry · factor, on their way to where they are stored.
struct WeightRun {
  BlockRun run;
  /// Rows that are stored, of run.rows.
  int64_t rows = 0;
  const float* references = nullptr;  ///< one a row of the run
  const float* factors = nullptr;     ///< one a row of the run, 2¹⁴ of f16_scaled included
  Encoding encoding = Encoding::f32;  ///< f32, f16 or f16_scaled
  /// Where the weights of a panel go: one pointer a panel of the run, to the first key of the first
  /// row, which needs no alignment. Rows lie out_stride entries apart.
  std::byte* const* out = nullptr;
  int64_t out_stride = 0;
};

/// Weights of a run, entry · factor, on their way into sums and maxima of columns.
struct ColumnRun {
  BlockRun run;
  /// Rows that are added, of run.rows.
  int64_t rows = 0;
  const float* references = nullptr;  ///< one a row of the run
  const float* factors = nullptr;     ///< one a row of the run
  /// Where the columns of the run's keys are, 64-byte aligned; one a row, those of one array one
  /// after the other.
  float* const* sums = nullptr;
  float* const* maxima = nullptr;
};

/// Biases of a block in logit units: bias[row · row_stride + key]; −inf excludes an entry, others
/// lie above kMaskedBias (core/mask/masked_bias.h).
struct BlockBias {
  const float* data = nullptr;
  int64_t row_stride = 0;  ///< 0: one row serves all
};

/// Entries of some rows on their way to where they are stored. Nothing needs alignment; exactly
/// rows × count entries are written.
struct EncodeRows {
  const float* source = nullptr;
  int64_t source_stride = 0;
  const float* factors = nullptr;  ///< one a row; null: 1
  std::byte* destination = nullptr;
  int64_t destination_stride = 0;  ///< in entries
  int64_t rows = 0;
  int64_t count = 0;  ///< entries of a row
};

/// A run of keys up to `end` whose weights are added to one segment's mass. Runs follow each other
/// from key 0 on and have at most 4096 keys, so that a lane adds no more than 256 terms.
struct SegmentRun {
  int64_t end = 0;
  int64_t segment = 0;
};
inline constexpr int64_t kMaxRunKeys = 256 * kSumLanes;

/// The state of a row's reductions, in kSumLanes lanes by key index mod 16: the sum of the run of
/// keys that is under way, and the largest weight so far. Both begin at 0.
struct alignas(64) RowLanes {
  float sums[kSumLanes];
  float maxima[kSumLanes];
};

/// Rows of ReducedRows at most: those of a unit (core/reduce/panel_reduction.h).
inline constexpr int64_t kMaxReducedRows = 48;

/// Up to kMaxReducedRows rows of entries whose weights, entry · factor, are to be reduced: all of
/// their keys, or part after part in their order. Arrays are 64-byte aligned; rows and columns have
/// a multiple of kBlockKeys elements, those beyond the row's keys are 0.
struct ReducedRows {
  const float* entries = nullptr;  ///< from the part's first key on
  int64_t stride = 0;
  const float* factors = nullptr;
  int64_t rows = 0;
  IndexRange keys;  ///< of the part, beginning at a multiple of kBlockKeys
  /// Sums and maxima of the part's columns go on from what is there; null: not wanted.
  float* column_sums = nullptr;
  float* column_maxima = nullptr;
  /// Row r's mass of each segment is added to masses[r · segments + segment], and lanes[r].maxima
  /// go on; null: not wanted. The runs cover all keys of the part, the first one its first key.
  double* masses = nullptr;
  int64_t segments = 0;
  const SegmentRun* runs = nullptr;
  RowLanes* lanes = nullptr;
};

/// Lines of keys of a token grid: those of some lines of some frames from column to column.
struct KeyBox {
  int64_t first_key = 0;   ///< that the grid begins at
  int64_t frame_keys = 0;  ///< height · width
  int64_t line_keys = 0;   ///< width
  IndexRange frames, lines, columns;
};

/// Entries of a row group with a key block on their way into outputs. Arrays are 64-byte aligned.
struct ValueProduct {
  const float* weights = nullptr;  ///< [rows, kBlockKeys]
  int64_t rows = 0;                ///< a multiple of kRegisterRows
  int64_t total_rows = 0;          ///< that totals have room for
  int64_t keys = 0;                ///< of the block, at most kBlockKeys
  /// V of the block's keys: `panels` panels [keys, kValueChannels], panel_stride floats apart.
  const float* values = nullptr;
  int64_t panel_stride = 0;
  int64_t panels = 0;
  double* totals = nullptr;  ///< [panels, total_rows, kValueChannels], goes on from what is there
};

struct KeyRows;
struct SplitRows;

/// The kernels of one instruction set. Functions are pure and thread-safe; the dot products of
/// `raw` and `softmax` exist once for float32 panels and, where it has them, for bf16 pairs and for
/// the tile unit.
struct CpuKernels {
  struct Products {
    /// out = q·k.
    void (*raw)(const ProductBlock& block) = nullptr;
    /// out = 2^(factor·q·k − reference), for blocks without mask whose keys all exist. Exponents
    /// far below any reference (from about −2⁵⁰ on) may spoil a row's sum, see is_sound_sum. Those
    /// of the tile unit take every power from the table and need a place for the entries.
    void (*softmax)(const ProductBlock& block, SplitFactor factor, RowReferences& rows) = nullptr;
    /// For the tile unit, else null. Adds the sums of the run's blocks, each as softmax() forms
    /// them, until one is not sound or less than it must be. Returns how many blocks were added.
    int64_t (*sum_run)(const BlockRun& run, SplitFactor factor, RunSums& rows) = nullptr;
    /// For the tile unit, else null: the bits of softmax() and encode_weights(). Nothing may
    /// overflow: t − reference stays below 127.
    void (*weight_run)(const WeightRun& weights, SplitFactor factor) = nullptr;
    /// For the tile unit, else null: the entries of softmax() for all blocks of the run, to
    /// out[row · out_stride + key].
    void (*entry_run)(const BlockRun& run, SplitFactor factor, const float* references, float* out,
                      int64_t out_stride) = nullptr;
    /// For the tile unit, else null: the bits of entry_run() and reduce_rows(). Every row's weights
    /// are added to its columns' sums, in the order of rows.
    void (*column_run)(const ColumnRun& columns, SplitFactor factor) = nullptr;
    /// For cpu_ceilings.h: this product from registers alone. Returns how many floating-point
    /// operations it did; sink, 16 floats, holds the operands and keeps the result alive.
    double (*spin)(int64_t iterations, float* sink) = nullptr;
    /// Of the tile unit: q·k where a few query rows meet keys as they are stored (key_rows.h). The
    /// bits are those of `raw`.
    void (*key_rows)(const KeyRows& rows) = nullptr;
  };

  std::string_view isa;     ///< "AVX-512", "AVX2", "NEON", "scalar"
  bool fused_multiply_add;  ///< all instruction sets that have it give the same bits
  Products f32;
  Products bf16;            ///< vdpbf16ps; null where this processor has none
  Products bf16_emulated;   ///< the same sums from float32 instructions, for tests; may be null
  Products tiles;           ///< AMX; null where this instruction set is not the one beside it
  Products tiles_emulated;  ///< the same sums from float32 instructions; null without fused ones
  Products f16_tiles;       ///< AMX-FP16: of f16 numbers as they are; null likewise
  Products f16_tiles_emulated;

  /// The largest bits of numbers without their signs: infinite or NaN only where one of them is.
  uint32_t (*largest_bits)(DType dtype, const std::byte* data, int64_t count);
  /// f16 and f32 are split in parts as for a packed head; finite numbers only.
  void (*split_rows)(const SplitRows& rows);

  /// In place over raw products: product = C/scale·tanh(product·scale/C), of which the other passes
  /// make capped logits. NaN for a product that is infinite or NaN.
  void (*cap_pass)(const ProductBlock& block, const CapFactors& factors);
  /// In place over raw products, [rows, kBlockKeys]: the entries of Products::softmax with a
  /// mask or bias. Panels that were not computed become 0, here and below.
  void (*softmax_pass)(const ProductBlock& block, SplitFactor factor, const BlockBias& bias,
                       RowReferences& rows);
  /// Gives softmax_pass's bits at less speed, and 0 for whatever lies far below 0: a row's sum is
  /// unsound only where the reference is too low or a product of a key that counts is not finite.
  void (*far_softmax_pass)(const ProductBlock& block, SplitFactor factor, const BlockBias& bias,
                           RowReferences& rows);
  /// The largest round(log₂(e)·logit) of each row over raw products, −FLT_MAX where every key is
  /// masked. Leaves the products as they are.
  void (*exponent_maxima)(const ProductBlock& block, SplitFactor factor, const BlockBias& bias,
                          float (&maxima)[kMaxGroupRows]);
  /// Entries of linear scores, in place: masked entries become 0, sums are formed; references are
  /// not used.
  void (*linear_pass)(const ProductBlock& block, const BlockBias& bias, RowReferences& rows);
  /// In place 1 / (1 + exp(−s)), s = scale·q·k + bias; `factor` is scale·log₂(e).
  void (*sigmoid_pass)(const ProductBlock& block, SplitFactor factor, const BlockBias& bias);
  /// In place s = scale·q·k + bias; `scale` in natural units. Panels that were not computed become
  /// −inf.
  void (*logit_pass)(const ProductBlock& block, SplitFactor scale, const BlockBias& bias);

  /// Weights source·factor of the row, stored as `encoding`; below 2⁻¹⁰⁰ they are 0.
  void (*encode_weights)(const EncodeRows& rows, Encoding encoding);
  /// Logits as f32 or f16.
  void (*encode_logits)(const EncodeRows& rows, Encoding encoding);

  void (*reduce_rows)(const ReducedRows& rows);
  /// Adds entries of the keys in both `part` and `box` to lanes by key index mod 16; entries[0] is
  /// of the part's first key, a multiple of kSumLanes, aligned like it, and readable up to the next
  /// multiple behind its end.
  void (*add_box)(const float* entries, IndexRange part, const KeyBox& box, float* lanes);
  /// totals += weights · values: float32 over the keys of the block in their order, then double.
  void (*multiply_values)(const ValueProduct& product);
  /// destination[i] += source[i]·factor; nothing needs alignment.
  void (*add_scaled)(const float* source, int64_t count, float factor, float* destination);
  /// For rows that follow each other: destination[j − r] += entries[r][j]·factors[r].
  void (*add_diagonals)(const ReducedRows& rows, float* destination);
  /// The first i with entries[i]·factor == weight, or −1.
  int64_t (*find_weight)(const float* entries, int64_t count, float factor, float weight);
  /// −Σ w·log₂(w) of the weights w = entries[i]·factor; those below 2⁻¹²⁰ are treated as that.
  double (*negative_plogp)(const float* entries, int64_t count, float factor);

  /// For cpu_ceilings.h: takes `iterations` times the exponential of an L1-resident buffer (2048
  /// floats, 64-byte aligned) into another and returns how many exponentials that was.
  double (*spin_exp2)(int64_t iterations, const float* source, float* destination);
  /// spin_exp2 by the table, as the tile unit's entries are taken.
  double (*spin_table_exp2)(int64_t iterations, const float* source, float* destination);
};

}  // namespace attnscope
