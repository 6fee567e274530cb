// CpuHead::reduce. Vector products are kept as emit_panel keeps them, in a stash of whole rows,
// until the rows' sums are known. The tile unit rather multiplies again, key blocks of a few at a
// time, whose entries stay in the core's own cache.
#include "kernels/cpu/cpu_head.h"

#include <algorithm>
#include <cassert>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/base/checked_math.h"
#include "core/problem/signed_weights.h"
#include "kernels/common/flush_denormals.h"

namespace attnscope {
namespace {

std::vector<SegmentRun> make_runs(const KeySegments& segments) {
  std::vector<SegmentRun> runs;
  for (const KeySegments::Span& span : segments.spans()) {
    for (int64_t key = span.keys.begin; key < span.keys.end; key += kMaxRunKeys) {
      runs.push_back({std::min(key + kMaxRunKeys, span.keys.end), span.segment});
    }
  }
  return runs;
}

}  // namespace

void CpuHead::reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
                     std::span<std::byte> workspace) const {
  require_one_sign(head_.problem, "what a map adds up to");
  const FlushDenormals flush;
  const auto total = static_cast<int64_t>(queries.index.size());
  Workspace pieces(workspace);
  const Buffers buffers =
      take_buffers(head_.format, head_.num_keys(), total, head_.num_keys(), true, pieces);
  const std::vector<SegmentRun> runs = make_runs(panel.segments());
  std::vector<RowNorm> norms(queries.index.size());
  KeyProducts products(head_, all_blocks(), buffers.queries);
  const bool twice = emits_twice(head_.format);
  const bool columns_alone = twice && panel.request().columns_alone();
  for (int64_t begin = 0; begin < total;) {
    int64_t count = std::min(columns_alone ? buffers.rows : buffers.stash_rows, total - begin);
    if (twice) count = rows_together(panel, first + begin, count);
    const Rows rows = load(queries, begin, count, buffers);
    if (is_normalised(head_.format.score)) {
      const IndexRange kept = twice ? IndexRange{} : all_blocks();
      sum_rows(rows, kept, panel.request().entropy, products, buffers, norms);
    } else {
      fill_sigmoid(rows, products, buffers);
    }
    for (int64_t row = 0; row < rows.count(); ++row) {
      const RowNorm& norm = norms[static_cast<size_t>(begin + row)];
      panel.row(first + begin + row).norm = norm;
      buffers.factors[row] = is_normalised(head_.format.score)
                                 ? weight_factor(norm, buffers.sums[row].reference)
                                 : 1.0f;
      buffers.lanes[row] = {};
      buffers.places[row] = {};
    }
    const Reduced reduced{rows, first + begin, runs, panel};
    if (columns_alone) {
      reduce_columns(reduced, products, buffers);
    } else {
      twice ? reduce_twice(reduced, products, buffers) : reduce_stash(reduced, buffers);
    }
    begin += rows.count();
  }
}

void CpuHead::reduce_stash(const Reduced& reduced, const Buffers& buffers) const {
  const KeyPart whole{{0, head_.num_keys()}, buffers.stash, buffers.stash_stride};
  for (IndexRange rows{0, 0}; (rows = next_unit(reduced, rows.end)).size() > 0;) {
    reduce_part(reduced, rows, whole, buffers);
    finish_rows(reduced, rows, buffers);
  }
}

IndexRange CpuHead::next_unit(const Reduced& reduced, int64_t row) {
  const int64_t count = reduced.rows.count();
  if (row == count) return {};
  const int64_t end = reduced.panel.unit_end(reduced.first + row) - reduced.first;
  return {row, std::min(end, count)};
}

void CpuHead::fill_sigmoid(const Rows& rows, KeyProducts& products, const Buffers& buffers) const {
  for (int64_t block = 0; block < head_.num_blocks(); ++block) {
    for (int64_t group = 0; group < rows.groups(); ++group) {
      float* const out =
          buffers.stash + group * buffers.group_rows * buffers.stash_stride + block * kBlockKeys;
      const auto count = static_cast<int64_t>(rows.group(group).size());
      KeyBlockProduct meeting = meet(rows, group, block, products, buffers);
      if (meeting.empty()) {
        for (int64_t row = 0; row < count; ++row) {
          std::fill_n(out + row * buffers.stash_stride, kBlockKeys, 0.0f);
        }
        continue;
      }
      const StashPlace place(out, count, meeting, buffers);
      meeting.sigmoid();
      place.keep();
    }
  }
}

void CpuHead::reduce_part(const Reduced& reduced, IndexRange rows, const KeyPart& part,
                          const Buffers& buffers) const {
  PanelReduction& panel = reduced.panel;
  const bool wants_rows = panel.request().any_rows();
  const auto run = std::find_if(reduced.runs.begin(), reduced.runs.end(),
                                [&](const SegmentRun& r) { return r.end > part.keys.begin; });
  const auto column = [&](float* columns) {
    return columns == nullptr ? nullptr : columns + part.keys.begin;
  };
  const int64_t first = reduced.first + rows.begin;
  const ReducedRows sweep{.entries = part.row(rows.begin),
                          .stride = part.stride,
                          .factors = buffers.factors + rows.begin,
                          .rows = rows.size(),
                          .keys = part.keys,
                          .column_sums = column(panel.column_sums(first)),
                          .column_maxima = column(panel.column_maxima(first)),
                          .masses = wants_rows ? panel.masses(first) : nullptr,
                          .segments = panel.segments().count(),
                          .runs = &*run,
                          .lanes = buffers.lanes + rows.begin};
  head_.kernels.reduce_rows(sweep);
  add_diagonals(sweep, first, panel);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    reduce_row(reduced, row, part, buffers);
  }
}

void CpuHead::add_diagonals(ReducedRows rows, int64_t first, PanelReduction& panel) const {
  if (panel.diagonal(first) == nullptr) return;
  const int64_t key = rows.keys.begin;
  const int64_t last = first + rows.rows - 1;
  if (panel.row_index(last) - panel.row_index(first) == last - first) {
    return head_.kernels.add_diagonals(rows, panel.diagonal(first) + key);
  }
  for (int64_t r = 0; r < rows.rows; ++r) {
    head_.kernels.add_scaled(rows.entries + r * rows.stride, rows.keys.size(), rows.factors[r],
                             panel.diagonal(first + r) + key);
  }
}

void CpuHead::reduce_row(const Reduced& reduced, int64_t row, const KeyPart& part,
                         const Buffers& buffers) const {
  PanelReduction& panel = reduced.panel;
  const ReductionRequest& request = panel.request();
  const CpuKernels& kernels = head_.kernels;
  const float* const entries = part.row(row);
  const float factor = buffers.factors[row];
  const int64_t position = reduced.first + row;
  RowReduction& result = panel.row(position);
  if (request.any_rows() && (request.max_keys || part.keys.end == head_.num_keys())) {
    const float largest =
        *std::max_element(buffers.lanes[row].maxima, buffers.lanes[row].maxima + kSumLanes);
    const bool rises = static_cast<double>(largest) > result.max_weight;
    result.max_weight = static_cast<double>(largest);
    if (request.max_keys && rises) {
      result.max_key =
          part.keys.begin + kernels.find_weight(entries, part.keys.size(), factor, largest);
    }
  }
  if (panel.wants_shares(position)) keep_share_row(reduced, row, part, buffers);
  // Others than softmax are never reduced in parts.
  if (request.entropy && !is_softmax(head_.format.score) && result.max_weight > 0) {
    result.entropy = std::numbers::ln2 * kernels.negative_plogp(entries, part.keys.size(), factor);
  }
  if (!request.places && !panel.wants_offsets()) return;
  const auto place = head_.problem.query_tokens().coord(panel.row_index(position));
  if (!place) return;
  const RowPart of_row{entries, factor, part.keys};
  if (request.places) {
    add_places(of_row, *place, request.band, buffers.places[row], result.places);
  }
  if (panel.wants_offsets()) add_offsets(of_row, *place, panel);
}

void CpuHead::add_places(const RowPart& row, LatentCoord place, int64_t band, PlaceLanes& lanes,
                         PlaceMasses& masses) const {
  const TokenGrid& grid = head_.problem.key_tokens();
  const int64_t first = grid.video_range().begin;
  const int64_t frame = grid.height() * grid.width();
  const PlaceBoxes boxes = place_boxes(grid, place, band);
  for (IndexRange keys{row.keys.begin, row.keys.begin}; keys.end < row.keys.end;) {
    keys.begin = keys.end;
    const int64_t run_end = (keys.begin / kMaxRunKeys + 1) * kMaxRunKeys;
    keys.end = std::min(run_end, row.keys.end);
    const IndexRange video = intersect(keys, grid.video_range());
    const IndexRange frames = video.empty() ? IndexRange{}
                                            : IndexRange{(video.begin - first) / frame,
                                                         (video.end - 1 - first) / frame + 1};
    const auto add = [&](const PlaceBox& box, float* to) {
      const KeyBox part{first,     frame,      grid.width(), intersect(box.frames, frames),
                        box.lines, box.columns};
      head_.kernels.add_box(row.entries + (keys.begin - row.keys.begin), keys, part, to);
    };
    add(boxes.earlier, lanes.same_position);
    add(boxes.later, lanes.same_position);
    add(boxes.band, lanes.band);
    add(boxes.local, lanes.local);
    if (keys.end != run_end && keys.end != head_.num_keys()) return;
    const auto mass = [&](const float* values) {
      return static_cast<double>(row.factor) * std::accumulate(values, values + kSumLanes, 0.0);
    };
    masses += {mass(lanes.same_position), mass(lanes.band), mass(lanes.local)};
    lanes = {};
  }
}

void CpuHead::add_offsets(const RowPart& row, LatentCoord place, PanelReduction& panel) const {
  const TokenGrid& grid = head_.problem.key_tokens();
  const IndexRange keys = intersect(row.keys, grid.video_range());
  for (int64_t key = keys.begin; key < keys.end;) {
    const int64_t line = (key - grid.video_range().begin) / grid.width();
    const int64_t x = (key - grid.video_range().begin) % grid.width();
    const int64_t count = std::min(grid.width() - x, keys.end - key);
    head_.kernels.add_scaled(
        row.entries + (key - row.keys.begin), count, row.factor,
        panel.offset_line(place, line / grid.height(), line % grid.height()) + x);
    key += count;
  }
}

void CpuHead::keep_share_row(const Reduced& reduced, int64_t row, const KeyPart& part,
                             const Buffers& buffers) const {
  PanelReduction& panel = reduced.panel;
  const float* entries = part.row(row);
  if (part.keys.size() < head_.num_keys()) {
    // Its place among those of the rows before it that are kept as well.
    int64_t before = 0;
    for (int64_t r = 0; r < row; ++r) before += panel.wants_shares(reduced.first + r) ? 1 : 0;
    float* const whole = buffers.share_rows + before * buffers.share_stride;
    std::copy_n(entries, part.keys.size(), whole + part.keys.begin);
    if (part.keys.end < head_.num_keys()) return;
    entries = whole;
  }
  RowReduction& result = panel.row(reduced.first + row);
  if (result.max_weight == 0) return;
  const RowEntries<float> weights{entries, static_cast<double>(buffers.factors[row])};
  result.keys_for = panel.key_counter().count(weights, head_.num_keys());
}

void CpuHead::finish_rows(const Reduced& reduced, IndexRange rows, const Buffers& buffers) const {
  const ReductionRequest& request = reduced.panel.request();
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    RowReduction& result = reduced.panel.row(reduced.first + row);
    if (request.any_rows()) result.masked = result.max_weight == 0;
    if (!result.masked && request.entropy && is_softmax(head_.format.score)) {
      result.entropy = entropy_of(buffers.sums[row]);
    }
  }
  reduced.panel.advance(reduced.first + rows.end);
}

int64_t CpuHead::rows_together(const PanelReduction& panel, int64_t first, int64_t most) const {
  const ReductionRequest& request = panel.request();
  const bool by_unit = request.diagonals || request.offsets;
  const int64_t most_units = std::min(kOpenUnits, panel.open_units());
  int64_t units = 0;
  int64_t shares = 0;
  for (int64_t row = 0; row < most; ++row) {
    // There, advance() rounds the sums over diagonals and offsets, which all rows add to.
    if (by_unit && row > 0 && panel.takes_in(first + row)) return row;
    const bool begins = row == 0 || panel.unit_end(first + row - 1) == first + row;
    units += begins ? 1 : 0;
    shares += panel.wants_shares(first + row) ? 1 : 0;
    if (units > most_units || shares > kTileUnitRows) return row;
  }
  return most;
}

void CpuHead::reduce_twice(const Reduced& reduced, KeyProducts& products,
                           const Buffers& buffers) const {
  const IndexRange all = all_blocks();
  for (IndexRange blocks{0, 0}; blocks.end < all.end;) {
    blocks = {blocks.end, std::min(blocks.end + kRunBlocks, all.end)};
    const KeyPart part{
        {blocks.begin * kBlockKeys, std::min(blocks.end * kBlockKeys, head_.num_keys())},
        buffers.stash,
        buffers.stash_stride};
    for (int64_t group = 0; group < reduced.rows.groups(); ++group) {
      float* const out = buffers.stash + group * buffers.group_rows * buffers.stash_stride;
      fill_part(reduced.rows, group, blocks, out, products, buffers);
    }
    for (IndexRange rows{0, 0}; (rows = next_unit(reduced, rows.end)).size() > 0;) {
      reduce_part(reduced, rows, part, buffers);
    }
  }
  for (IndexRange rows{0, 0}; (rows = next_unit(reduced, rows.end)).size() > 0;) {
    finish_rows(reduced, rows, buffers);
  }
}

RowReferences CpuHead::references_of(const Rows& rows, int64_t group,
                                     const Buffers& buffers) const {
  RowReferences references{};
  const RowSum* const sums = buffers.sums + group * buffers.group_rows;
  for (size_t row = 0; row < rows.group(group).size(); ++row) {
    references.references[row] = sums[row].reference;
  }
  return references;
}

void CpuHead::fill_part(const Rows& rows, int64_t group, IndexRange blocks, float* out,
                        KeyProducts& products, const Buffers& buffers) const {
  const RowGroup of_rows = group_of(rows, group, buffers);
  const auto count = static_cast<int64_t>(of_rows.index.size());
  RowReferences references = references_of(rows, group, buffers);
  while (!blocks.empty()) {
    const int64_t fit = blocks_of_run(head_, of_rows, blocks);
    if (fit > 0) {
      const BlockRun run =
          make_run(head_, of_rows, {blocks.begin, blocks.begin + fit}, references.references);
      head_.products.entry_run(run, head_.exponent_factor, references.references, out,
                               buffers.stash_stride);
      blocks.begin += fit;
      out += fit * kBlockKeys;
      continue;
    }
    KeyBlockProduct meeting = meet(rows, group, blocks.begin, products, buffers);
    if (meeting.empty()) {
      fill_rows(out, count, buffers.stash_stride, 0);
    } else {
      const StashPlace place(out, count, meeting, buffers);
      softmax_entries(meeting, of_rows.index, references);
      place.keep();
    }
    ++blocks.begin;
    out += kBlockKeys;
  }
}

void CpuHead::reduce_columns(const Reduced& reduced, KeyProducts& products,
                             const Buffers& buffers) const {
  const IndexRange all = all_blocks();
  for (IndexRange blocks{0, 0}; blocks.end < all.end;) {
    blocks = {blocks.end, std::min(blocks.end + kRunBlocks, all.end)};
    for (int64_t group = 0; group < reduced.rows.groups(); ++group) {
      add_columns(reduced, group, blocks, products, buffers);
    }
  }
  for (IndexRange rows{0, 0}; (rows = next_unit(reduced, rows.end)).size() > 0;) {
    finish_rows(reduced, rows, buffers);
  }
}

void CpuHead::add_columns(const Reduced& reduced, int64_t group, IndexRange blocks,
                          KeyProducts& products, const Buffers& buffers) const {
  const RowGroup of_rows = group_of(reduced.rows, group, buffers);
  const int64_t begin = group * buffers.group_rows;
  const int64_t end = begin + static_cast<int64_t>(of_rows.index.size());
  const RowReferences references = references_of(reduced.rows, group, buffers);
  while (!blocks.empty()) {
    const int64_t fit = blocks_of_run(head_, of_rows, blocks);
    const int64_t key = blocks.begin * kBlockKeys;
    if (fit > 0) {
      float* sums[kMaxGroupRows];
      float* maxima[kMaxGroupRows];
      for (int64_t row = begin; row < end; ++row) {
        sums[row - begin] = reduced.panel.column_sums(reduced.first + row) + key;
        maxima[row - begin] = reduced.panel.column_maxima(reduced.first + row) + key;
      }
      const IndexRange fitting{blocks.begin, blocks.begin + fit};
      head_.products.column_run({.run = make_run(head_, of_rows, fitting, references.references),
                                 .rows = end - begin,
                                 .references = references.references,
                                 .factors = buffers.factors + begin,
                                 .sums = sums,
                                 .maxima = maxima},
                                head_.exponent_factor);
      blocks.begin += fit;
      continue;
    }
    const IndexRange block{blocks.begin, blocks.begin + 1};
    fill_part(reduced.rows, group, block, buffers.stash, products, buffers);
    const KeyPart part{head_.keys_of_block(block.begin), buffers.stash, buffers.stash_stride,
                       begin};
    for (IndexRange rows{begin, begin}; rows.end < end;) {
      rows = next_unit(reduced, rows.end);
      rows.end = std::min(rows.end, end);
      reduce_part(reduced, rows, part, buffers);
    }
    ++blocks.begin;
  }
}

}  // namespace attnscope
