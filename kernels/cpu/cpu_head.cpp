#include "kernels/cpu/cpu_head.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "kernels/common/emit_runs.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/cpu/packing/cpu_packing.h"

namespace attnscope {
namespace {

/// Rows of a row block: so many that reading K once for all of them costs little.
constexpr int64_t kBlockRows = 96;
/// The tile unit is so much faster that K has to be read less often.
constexpr int64_t kTileUnitBlockRows = 3 * kMaxGroupRows;
static_assert(kBlockRows % kRegisterRows == 0 && kBlockRows % kTileUnitRows == 0);
/// Where K is small enough to come from a shared cache, the stash of a row block rather stays in
/// the core's own cache, as far as one row group allows. Both measured, on 1 MiB of L2.
constexpr int64_t kSharedCacheElements = (int64_t{8} << 20) / 4;
constexpr int64_t kOwnCacheElements = (int64_t{768} << 10) / 4;

/// Key blocks that hold `keys`.
IndexRange blocks_of(IndexRange keys) {
  if (keys.empty()) return {};
  return {keys.begin / kBlockKeys, ceil_div(keys.end, kBlockKeys)};
}

}  // namespace

void fill_rows(float* first, int64_t rows, int64_t stride, float value) {
  for (int64_t row = 0; row < rows; ++row) std::fill_n(first + row * stride, kBlockKeys, value);
}

CpuHead::Buffers CpuHead::take_buffers(const PackedFormat& format, int64_t num_keys, int64_t rows,
                                       int64_t cols, bool one_product, Workspace& workspace) {
  Buffers buffers;
  // Products with V take rows by kRegisterRows, of which the largest group is a multiple.
  buffers.group_rows =
      one_product ? std::min(format.computed_rows(rows), format.group_rows()) : format.group_rows();
  const int64_t all_rows = round_up(rows, buffers.group_rows);
  buffers.rows = std::min(all_rows, emits_twice(format) ? kTileUnitBlockRows : kBlockRows);
  buffers.stash_rows = std::min(all_rows, kBlockRows);
  buffers.scratch.bias = workspace.take<float>(buffers.group_rows * kBlockKeys);
  buffers.scratch.edge_bias = workspace.take<float>(kBlockKeys);
  buffers.scratch.entries = workspace.take<float>(buffers.group_rows * kBlockKeys);
  buffers.queries = workspace.take<float>(buffers.rows * format.steps());
  buffers.packing = workspace.take<float>(pack_scratch_floats(format));
  buffers.sums = workspace.take<RowSum>(buffers.rows);
  buffers.factors = workspace.take<float>(buffers.rows);
  buffers.exponents = workspace.take<float>(buffers.rows);
  buffers.bounds = workspace.take<float>(buffers.rows);
  buffers.by_table = workspace.take<bool>(buffers.rows);
  if (!one_product) return buffers;
  buffers.lanes = workspace.take<RowLanes>(buffers.rows);
  buffers.places = workspace.take<PlaceLanes>(buffers.rows);
  if (emits_twice(format)) {
    // Parts of rows, and whole rows of a few of them.
    const int64_t keys = round_up(num_keys, kBlockKeys);
    buffers.stash_stride = std::min(keys, kRunBlocks * kBlockKeys) + 16;
    buffers.stash = workspace.take<float>(buffers.stash_rows * buffers.stash_stride);
    buffers.share_stride = num_keys > kRunBlocks * kBlockKeys ? keys + 16 : 0;
    buffers.share_rows =
        workspace.take<float>(std::min(buffers.stash_rows, kTileUnitRows) * buffers.share_stride);
    return buffers;
  }
  // The stash holds whole key blocks: `cols` keys touch at most this many. Rows a multiple of 4 KiB
  // apart would compete for the same lines of the cache.
  const int64_t blocks =
      std::min(ceil_div(num_keys, kBlockKeys), ceil_div(cols + kBlockKeys - 1, kBlockKeys));
  buffers.stash_stride = blocks * kBlockKeys + 16;
  int64_t elements = std::min(rows, buffers.rows) * buffers.stash_stride;
  if (packed_key_elements(format, num_keys) <= kSharedCacheElements) {
    // Never less than for fewer columns, whose rows are shorter but more.
    const int64_t most = std::max(kOwnCacheElements, buffers.group_rows * buffers.stash_stride);
    if (elements > most) {
      elements = most;
      buffers.rows = elements / buffers.stash_stride / buffers.group_rows * buffers.group_rows;
      buffers.stash_rows = buffers.rows;
    }
  }
  buffers.stash = workspace.take<float>(elements);
  return buffers;
}

int64_t CpuHead::workspace_bytes(const PackedFormat& format, int64_t num_keys, int64_t rows,
                                 int64_t cols, bool one_product) {
  Workspace counter;
  take_buffers(format, num_keys, rows, cols, one_product, counter);
  if (!one_product || !emits_twice(format)) return counter.bytes_needed();
  Workspace twice;
  take_buffers(format, num_keys, rows, cols, false, twice);
  return std::max(counter.bytes_needed(), twice.bytes_needed());
}

CpuHead::Rows CpuHead::load(const QueryBlock& queries, int64_t first, int64_t rows,
                            const Buffers& buffers) const {
  const PackedFormat& format = head_.format;
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  const auto total = static_cast<int64_t>(queries.index.size());
  const int64_t count = std::min(rows, total - first);
  assert((head_.panels != nullptr || total <= kRegisterRows) && "K is streamed for one row group");
  Rows block{first, queries.index.subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
             buffers.group_rows};
  // Cauchy-Schwarz: no |t| of the row is larger. A little is added for the roundings of the
  // lengths.
  const float bound = 1.0001f * head_.largest_key * std::fabs(head_.exponent_factor.high);
  for (int64_t group = 0; group < block.groups(); ++group) {
    const int64_t begin = group * buffers.group_rows;
    const QueryRows given{queries.data + (first + begin) * row_bytes,
                          std::min(buffers.group_rows, count - begin)};
    const PackedQueries packed{buffers.queries + begin * format.steps(), buffers.exponents + begin,
                               buffers.bounds + begin};
    pack_queries(format, given, packed, buffers.packing);
    for (int64_t row = begin; row < begin + format.computed_rows(given.count); ++row) {
      buffers.bounds[row] *= bound;
      buffers.by_table[row] = buffers.bounds[row] <= kMaxTableExponent;
    }
  }
  return block;
}

RowGroup CpuHead::group_of(const Rows& rows, int64_t group, const Buffers& buffers) const {
  const int64_t begin = group * buffers.group_rows;
  RowGroup of_rows{rows.group(group), buffers.queries + begin * head_.format.steps()};
  if (head_.format.products == PackedProducts::tiles) {
    of_rows.by_table = buffers.by_table + begin;
    of_rows.bounds = buffers.bounds + begin;
  }
  return of_rows;
}

KeyBlockProduct CpuHead::meet(const Rows& rows, int64_t group, int64_t block, KeyProducts& products,
                              const Buffers& buffers) const {
  return KeyBlockProduct(head_, products, buffers.scratch, group_of(rows, group, buffers), block);
}

bool CpuHead::sum_block(const Rows& rows, int64_t group, int64_t block, IndexRange stash_blocks,
                        WantedEntries wanted, KeyProducts& products, const Buffers& buffers) const {
  KeyBlockProduct meeting = meet(rows, group, block, products, buffers);
  const auto count = static_cast<int64_t>(rows.group(group).size());
  float* const stash = buffers.stash + group * buffers.group_rows * buffers.stash_stride;
  const int64_t kept =
      (std::clamp(block, stash_blocks.begin, stash_blocks.end) - stash_blocks.begin) * kBlockKeys;
  const bool stashed = stash_blocks.contains(block);
  if (meeting.empty()) {
    if (stashed) fill_rows(stash + kept, count, buffers.stash_stride, 0);
    return false;
  }
  const StashPlace place(stashed ? stash + kept : nullptr, count, meeting, buffers);
  const std::span sums(buffers.sums + group * buffers.group_rows,
                       static_cast<size_t>(meeting.rows()));
  const int64_t bad_row =
      is_linear(head_.format.score)
          ? add_linear_block(meeting, sums)
          : add_softmax_block(meeting, sums, {stash, buffers.stash_stride, kept, count}, wanted);
  if (bad_row >= 0) refuse_row(rows.group(group)[static_cast<size_t>(bad_row)]);
  place.keep();
  return true;
}

void CpuHead::sum_blocks(const Rows& rows, int64_t group, IndexRange blocks, bool with_moments,
                         KeyProducts& products, const Buffers& buffers) const {
  const RowGroup of_rows = group_of(rows, group, buffers);
  const int64_t computed = head_.format.computed_rows(static_cast<int64_t>(of_rows.index.size()));
  const std::span sums(buffers.sums + group * buffers.group_rows, static_cast<size_t>(computed));
  for (int64_t block = blocks.begin; block < blocks.end;) {
    const int64_t fit = blocks_of_run(head_, of_rows, {block, blocks.end});
    if (fit > 0) {
      const int64_t added =
          add_softmax_run(head_, of_rows, {block, block + fit}, sums, with_moments);
      block += added;
      if (added == fit) continue;
    }
    const WantedEntries wanted{.moments = with_moments, .entries = false};
    sum_block(rows, group, block++, {}, wanted, products, buffers);
  }
}

CpuHead::StashPlace::StashPlace(float* stash, int64_t rows, KeyBlockProduct& meeting,
                                const Buffers& buffers)
    : stash_(stash), stride_(buffers.stash_stride), rows_(rows) {
  if (stash != nullptr && rows == meeting.rows()) {
    meeting.set_output(stash, stride_);
  } else {
    scratch_ = buffers.scratch.entries;
    meeting.set_output(buffers.scratch.entries, kBlockKeys);
  }
}

void CpuHead::StashPlace::keep() const {
  if (stash_ == nullptr || scratch_ == nullptr) return;
  for (int64_t row = 0; row < rows_; ++row) {
    std::copy_n(scratch_ + row * kBlockKeys, kBlockKeys, stash_ + row * stride_);
  }
}

float CpuHead::feature_reference(int64_t row, const Buffers& buffers) const {
  return buffers.exponents[row] + static_cast<float>(head_.key_exponent);
}

bool CpuHead::is_masked_out(int64_t query, const Buffers& buffers) const {
  const Mask& mask = head_.problem.mask();
  if (mask.is_none()) return false;
  for (int64_t block = 0; block < head_.num_blocks(); ++block) {
    const IndexRange keys = head_.keys_of_block(block);
    float* bias = buffers.scratch.edge_bias;
    mask.fill_bias(head_.batch, head_.head, {&query, 1}, keys, bias, kBlockKeys);
    if (std::any_of(bias, bias + keys.size(), [](float b) { return std::isfinite(b); })) {
      return false;
    }
  }
  return true;
}

/// A sum near float32's end has lost keys to it. elu(x) + 1 is never 0, so only a mask makes a row
/// of zeros; max(x, 0) may be.
bool CpuHead::is_too_small(const RowSum& sum, int64_t query, const Buffers& buffers) const {
  switch (head_.format.score.form) {
    case ScoreFunction::Form::linear_elu1:
      return sum.total < 0x1p-80 && (sum.total > 0 || !is_masked_out(query, buffers));
    case ScoreFunction::Form::linear_relu:
      return sum.total < 0x1p-60 && (sum.total > 0 || features_.meets_any(query));
    default:
      return false;
  }
}

void CpuHead::start_sums(const Rows& rows, const Buffers& buffers) const {
  for (int64_t row = 0; row < rows.groups() * buffers.group_rows; ++row) {
    buffers.sums[row] = {};
    // Softmax rows find their references; those of linear rows are how their features were scaled.
    if (is_linear(head_.format.score))
      buffers.sums[row].reference = feature_reference(row, buffers);
  }
}

void CpuHead::sum_rows(const Rows& rows, IndexRange stash_blocks, bool with_moments,
                       KeyProducts& products, const Buffers& buffers,
                       std::span<RowNorm> norms) const {
  start_sums(rows, buffers);
  const bool in_runs = emits_twice(head_.format) && stash_blocks.empty();
  const int64_t together = in_runs ? kRunBlocks : 1;
  for (int64_t block = 0; block < head_.num_blocks(); block += together) {
    for (int64_t group = 0; group < rows.groups(); ++group) {
      if (in_runs) {
        const IndexRange blocks{block, std::min(block + together, head_.num_blocks())};
        sum_blocks(rows, group, blocks, with_moments, products, buffers);
        continue;
      }
      const WantedEntries wanted{.moments = with_moments, .entries = stash_blocks.contains(block)};
      sum_block(rows, group, block, stash_blocks, wanted, products, buffers);
    }
  }
  finish_sums(rows, buffers, norms);
}

void CpuHead::finish_sums(const Rows& rows, const Buffers& buffers,
                          std::span<RowNorm> norms) const {
  for (int64_t row = 0; row < rows.count(); ++row) {
    const int64_t query = rows.index[static_cast<size_t>(row)];
    if (is_unresolved(buffers.sums[row]) || is_too_small(buffers.sums[row], query, buffers)) {
      refuse_row(query);
    }
    RowNorm& norm = norms[static_cast<size_t>(rows.first + row)];
    const double sink = head_.problem.sinks().logit(head_.batch, head_.head, query);
    norm = norm_of(buffers.sums[row]).with_logit(sink);
    // A row of a sink alone has no reference of its own; its factor must be finite.
    if (buffers.sums[row].total == 0)
      buffers.sums[row].reference = static_cast<float>(norm.exponent);
  }
}

void CpuHead::row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                        std::span<std::byte> workspace) const {
  assert(is_normalised(head_.format.score) && norms.size() == queries.index.size());
  const FlushDenormals flush;
  const auto total = static_cast<int64_t>(queries.index.size());
  Workspace pieces(workspace);
  const Buffers buffers = take_buffers(head_.format, head_.num_keys(), total, 0, false, pieces);
  KeyProducts products(head_, all_blocks(), buffers.queries);
  for (int64_t first = 0; first < total; first += buffers.rows) {
    const Rows rows = load(queries, first, buffers.rows, buffers);
    sum_rows(rows, {}, false, products, buffers, norms);
  }
}

void CpuHead::emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                         const EmitTarget& target, std::span<std::byte> workspace) const {
  assert(is_normalised(head_.format.score) && norms.size() == queries.index.size());
  if (emits_twice(head_.format)) {
    row_norms(queries, norms, workspace);
    return emit(queries, norms, keys, Quantity::weights, target, workspace);
  }
  const FlushDenormals flush;
  const auto total = static_cast<int64_t>(queries.index.size());
  Workspace pieces(workspace);
  const Buffers buffers =
      take_buffers(head_.format, head_.num_keys(), total, keys.size(), true, pieces);
  const IndexRange stash_blocks = blocks_of(keys);
  KeyProducts products(head_, all_blocks(), buffers.queries);
  for (int64_t first = 0; first < total; first += buffers.rows) {
    const Rows rows = load(queries, first, buffers.rows, buffers);
    sum_rows(rows, stash_blocks, false, products, buffers, norms);
    emit_stash(rows, stash_blocks, {norms, keys, Quantity::weights, target}, buffers);
  }
}

void CpuHead::emit_stash(const Rows& rows, IndexRange stash_blocks, const Rectangle& rectangle,
                         const Buffers& buffers) const {
  for (int64_t row = 0; row < rows.count(); ++row) {
    const RowNorm& norm = rectangle.norms[static_cast<size_t>(rows.first + row)];
    buffers.factors[row] = weight_factor(norm, buffers.sums[row].reference);
  }
  const int64_t skipped = rectangle.keys.begin - stash_blocks.begin * kBlockKeys;
  const EncodeRows encode{.source = buffers.stash + skipped,
                          .source_stride = buffers.stash_stride,
                          .factors = buffers.factors,
                          .rows = rows.count()};
  encode_runs(encode, rows.first, {0, rectangle.keys.size()}, rectangle);
}

void CpuHead::encode_runs(const EncodeRows& entries, int64_t first_row, IndexRange cols,
                          const Rectangle& rectangle) const {
  const EmitTarget& target = rectangle.target;
  // Rows within a column block: a target's rows are neighbours in memory.
  for_each_run(target, first_row, cols, [&](const EmitRun& run) {
    EncodeRows rows = entries;
    rows.source += run.col - cols.begin;
    rows.destination = run.destination;
    rows.destination_stride = target.row_stride;
    rows.count = run.count;
    if (rectangle.quantity == Quantity::logits) {
      head_.kernels.encode_logits(rows, target.encoding);
    } else {
      head_.kernels.encode_weights(rows, target.encoding);
    }
  });
}

void CpuHead::emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
                   Quantity quantity, const EmitTarget& target,
                   std::span<std::byte> workspace) const {
  if (quantity == Quantity::logits && is_linear(head_.format.score)) {
    throw usage_error(head_.problem.name() + ": score " + score_name(head_.format.score) +
                      " has no logits");
  }
  assert(norms.size() == (needs_norms(head_.format.score, quantity) ? queries.index.size() : 0));
  const FlushDenormals flush;
  const auto total = static_cast<int64_t>(queries.index.size());
  Workspace pieces(workspace);
  const Buffers buffers = take_buffers(head_.format, head_.num_keys(), total, 0, false, pieces);
  // Encoders of weights know none below 0.
  const Quantity taken = is_signed(head_.format.score) ? Quantity::logits : quantity;
  const Rectangle rectangle{norms, keys, taken, target};
  KeyProducts products(head_, blocks_of(keys), buffers.queries);
  for (int64_t first = 0; first < total; first += buffers.rows) {
    const Rows rows = load(queries, first, buffers.rows, buffers);
    for (IndexRange blocks = blocks_of(keys); !blocks.empty();) {
      std::byte* panels[kRunBlocks * kBlockPanels];
      const int64_t together = run_panels(blocks, rectangle, panels);
      const IndexRange these{blocks.begin, blocks.begin + std::max<int64_t>(together, 1)};
      for (int64_t group = 0; group < rows.groups(); ++group) {
        emit_blocks(rows, group, these, rectangle,
                    std::span(panels).first(static_cast<size_t>(together * kBlockPanels)), products,
                    buffers);
      }
      blocks.begin = these.end;
    }
  }
}

void CpuHead::emit_blocks(const Rows& rows, int64_t group, IndexRange blocks,
                          const Rectangle& rectangle, std::span<std::byte*> panels,
                          KeyProducts& products, const Buffers& buffers) const {
  const IndexRange keys = rectangle.keys;
  while (!blocks.empty()) {
    if (!panels.empty()) {
      const int64_t done = emit_run(rows, group, blocks, rectangle, panels, buffers);
      blocks.begin += done;
      panels = panels.subspan(static_cast<size_t>(done * kBlockPanels));
      if (blocks.empty()) return;
      panels = panels.subspan(kBlockPanels);
    }
    const IndexRange part = intersect(head_.keys_of_block(blocks.begin), keys);
    if (wants_any(rectangle.target, {part.begin - keys.begin, part.end - keys.begin})) {
      emit_block(rows, group, blocks.begin, rectangle, products, buffers);
    }
    ++blocks.begin;
  }
}

int64_t CpuHead::run_panels(IndexRange blocks, const Rectangle& rectangle,
                            std::span<std::byte*> panels) const {
  const EmitTarget& target = rectangle.target;
  const int64_t first_col = blocks.begin * kBlockKeys - rectangle.keys.begin;
  if (head_.format.products != PackedProducts::tiles || rectangle.quantity != Quantity::weights ||
      target.encoding == Encoding::u8_log2 || first_col < 0 || first_col % kPanelKeys != 0 ||
      target.block_cols % kPanelKeys != 0) {
    return 0;
  }
  const int64_t bytes = encoding_bytes(target.encoding);
  const int64_t most =
      std::min({blocks.size(), kRunBlocks, (rectangle.keys.size() - first_col) / kBlockKeys});
  for (int64_t panel = 0; panel < most * kBlockPanels; ++panel) {
    const int64_t col = first_col + panel * kPanelKeys;
    std::byte* const block = target.blocks[static_cast<size_t>(col / target.block_cols)];
    if (block == nullptr) return panel / kBlockPanels;
    panels[static_cast<size_t>(panel)] = block + col % target.block_cols * bytes;
  }
  return most;
}

int64_t CpuHead::emit_run(const Rows& rows, int64_t group, IndexRange blocks,
                          const Rectangle& rectangle, std::span<std::byte*> panels,
                          const Buffers& buffers) const {
  const EmitTarget& target = rectangle.target;
  const RowGroup of_rows = group_of(rows, group, buffers);
  const int64_t fit = blocks_of_run(head_, of_rows, blocks);
  if (fit == 0) return 0;
  const int64_t first_row = rows.first + group * buffers.group_rows;
  const auto count = static_cast<int64_t>(of_rows.index.size());
  alignas(64) float references[kMaxGroupRows] = {};
  alignas(64) float factors[kMaxGroupRows] = {};
  const float common = target.encoding == Encoding::f16_scaled ? kF16Scale : 1;
  for (int64_t row = 0; row < count; ++row) {
    const RowNorm& norm = rectangle.norms[static_cast<size_t>(first_row + row)];
    references[row] = static_cast<float>(norm.exponent);
    // Norms are the caller's: nothing must overflow whatever they are.
    if (!(of_rows.bounds[row] - references[row] <= kMaxNarrowExponent)) return 0;
    factors[row] = weight_factor(norm, references[row]) * common;
  }
  std::byte* places[kRunBlocks * kBlockPanels];
  for (size_t panel = 0; panel < static_cast<size_t>(fit * kBlockPanels); ++panel) {
    places[panel] = panels[panel] + first_row * target.row_stride * encoding_bytes(target.encoding);
  }
  head_.products.weight_run(
      {.run = make_run(head_, of_rows, {blocks.begin, blocks.begin + fit}, references),
       .rows = count,
       .references = references,
       .factors = factors,
       .encoding = target.encoding,
       .out = places,
       .out_stride = target.row_stride},
      head_.exponent_factor);
  return fit;
}

void CpuHead::compute_entries(const Rows& rows, int64_t group, int64_t block,
                              const Rectangle& rectangle, KeyProducts& products,
                              const Buffers& buffers) const {
  const bool logits = rectangle.quantity == Quantity::logits;
  KeyBlockProduct meeting = meet(rows, group, block, products, buffers);
  float* const entries = buffers.scratch.entries;
  if (meeting.empty()) {
    return fill_rows(entries, meeting.rows(), kBlockKeys,
                     logits ? -std::numeric_limits<float>::infinity() : 0.0f);
  }
  meeting.set_output(entries, kBlockKeys);
  if (logits) return meeting.logits();
  if (head_.format.score == ScoreFunction::sigmoid) return meeting.sigmoid();
  RowReferences references{};
  if (is_linear(head_.format.score)) return meeting.linear(references);
  const int64_t first = rows.first + group * buffers.group_rows;
  for (size_t row = 0; row < rows.group(group).size(); ++row) {
    const RowNorm& norm = rectangle.norms[static_cast<size_t>(first) + row];
    references.references[row] = static_cast<float>(norm.exponent);
  }
  softmax_entries(meeting, rows.group(group), references);
}

void CpuHead::softmax_entries(const KeyBlockProduct& meeting, std::span<const int64_t> index,
                              RowReferences& references) const {
  meeting.softmax(references);
  if (std::all_of(references.sums, references.sums + meeting.rows(), is_sound_sum)) return;
  meeting.products();
  meeting.softmax_of_products(references);
  for (size_t row = 0; row < index.size(); ++row) {
    if (!is_sound_sum(references.sums[row])) refuse_row(index[row]);
  }
}

void CpuHead::emit_block(const Rows& rows, int64_t group, int64_t block, const Rectangle& rectangle,
                         KeyProducts& products, const Buffers& buffers) const {
  compute_entries(rows, group, block, rectangle, products, buffers);
  const int64_t first_row = rows.first + group * buffers.group_rows;
  const auto count = static_cast<int64_t>(rows.group(group).size());
  const bool linear = is_linear(head_.format.score);
  for (int64_t row = 0; row < count && !rectangle.norms.empty(); ++row) {
    const RowNorm& norm = rectangle.norms[static_cast<size_t>(first_row + row)];
    buffers.factors[row] =
        weight_factor(norm, linear ? feature_reference(group * buffers.group_rows + row, buffers)
                                   : static_cast<float>(norm.exponent));
  }
  const IndexRange part = intersect(head_.keys_of_block(block), rectangle.keys);
  const EncodeRows encode{.source = buffers.scratch.entries + (part.begin - block * kBlockKeys),
                          .source_stride = kBlockKeys,
                          .factors = rectangle.norms.empty() ? nullptr : buffers.factors,
                          .rows = count};
  encode_runs(encode, first_row,
              {part.begin - rectangle.keys.begin, part.end - rectangle.keys.begin}, rectangle);
}

void CpuHead::refuse_row(int64_t row) const {
  throw Error(
      ErrorCode::value,
      head_.problem.name() + ": head " + std::to_string(head_.head) + ", query " +
          std::to_string(row) +
          (is_linear(head_.format.score)
               ? ": the scores add up to more or less than float32 holds (--backend reference "
                 "counts in double)"
               : ": logits are too large for float32 to tell keys apart (limit 2900000)"));
}

}  // namespace attnscope
