// CpuHead::reduce: rows are summed into the stash of emit_panel and reduced where they lie.
#include "kernels/cpu/cpu_head.h"

#include <algorithm>
#include <cassert>
#include <numbers>
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
  for (int64_t begin = 0; begin < total; begin += buffers.rows) {
    const Rows rows = load(queries, begin, buffers.rows, buffers);
    if (is_normalised(head_.format.score)) {
      sum_rows(rows, all_blocks(), panel.request().entropy, products, buffers, norms);
    } else {
      fill_sigmoid(rows, products, buffers);
    }
    for (int64_t row = 0; row < rows.count(); ++row) {
      const RowNorm& norm = norms[static_cast<size_t>(begin + row)];
      panel.row(first + begin + row).norm = norm;
      buffers.factors[row] = is_normalised(head_.format.score)
                                 ? weight_factor(norm, buffers.sums[row].reference)
                                 : 1.0f;
    }
    for (int64_t group = 0; group < rows.groups(); ++group) {
      reduce_group(rows, group, first + begin + group * buffers.group_rows, buffers, runs, panel);
    }
  }
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

void CpuHead::reduce_group(const Rows& rows, int64_t group, int64_t first, const Buffers& buffers,
                           std::span<const SegmentRun> runs, PanelReduction& panel) const {
  const auto count = static_cast<int64_t>(rows.group(group).size());
  float maxima[kRegisterRows];
  const bool wants_rows = panel.request().any_rows();
  for (int64_t row = 0; row < count;) {
    const int64_t end = std::min({count, row + kRegisterRows, panel.unit_end(first + row) - first});
    const int64_t in_block = group * buffers.group_rows + row;
    ReducedRows sweep{.entries = buffers.stash + in_block * buffers.stash_stride,
                      .stride = buffers.stash_stride,
                      .factors = buffers.factors + in_block,
                      .rows = end - row,
                      .keys = head_.num_keys(),
                      .column_sums = panel.column_sums(),
                      .column_maxima = panel.column_maxima(),
                      .masses = wants_rows ? panel.masses(first + row) : nullptr,
                      .segments = panel.segments().count(),
                      .runs = runs.data(),
                      .row_maxima = maxima};
    head_.kernels.reduce_rows(sweep);
    add_diagonals(sweep, first + row, panel);
    for (int64_t r = row; r < end; ++r) {
      const int64_t place = group * buffers.group_rows + r;
      if (wants_rows) panel.row(first + r).max_weight = static_cast<double>(maxima[r - row]);
      reduce_row(buffers.stash + place * buffers.stash_stride, buffers.factors[place],
                 buffers.sums[place], first + r, panel);
    }
    panel.advance(first + end);
    row = end;
  }
}

void CpuHead::add_diagonals(ReducedRows rows, int64_t first, PanelReduction& panel) const {
  float* diagonal = panel.diagonal(first);
  if (diagonal == nullptr) return;
  const int64_t last = first + rows.rows - 1;
  if (panel.row_index(last) - panel.row_index(first) == last - first) {
    return head_.kernels.add_diagonals(rows, diagonal);
  }
  for (int64_t r = 0; r < rows.rows; ++r) {
    head_.kernels.add_scaled(rows.entries + r * rows.stride, rows.keys, rows.factors[r],
                             panel.diagonal(first + r));
  }
}

void CpuHead::reduce_row(const float* entries, float factor, const RowSum& sum, int64_t position,
                         PanelReduction& panel) const {
  const ReductionRequest& request = panel.request();
  const CpuKernels& kernels = head_.kernels;
  const int64_t keys = head_.num_keys();
  RowReduction& result = panel.row(position);
  if (request.any_rows()) result.masked = result.max_weight == 0;
  if (result.masked) return;
  if (request.entropy) {
    result.entropy = head_.format.score == ScoreFunction::softmax
                         ? entropy_of(sum)
                         : std::numbers::ln2 * kernels.negative_plogp(entries, keys, factor);
  }
  if (request.max_keys) {
    result.max_key =
        kernels.find_weight(entries, keys, factor, static_cast<float>(result.max_weight));
  }
  const RowEntries<float> row{entries, static_cast<double>(factor)};
  if (panel.wants_shares(position)) result.keys_for = panel.key_counter().count(row, keys);
  if (!request.places && !panel.wants_offsets()) return;
  const auto place = head_.problem.query_tokens().coord(panel.row_index(position));
  if (!place) return;
  const TokenGrid& grid = head_.problem.key_tokens();
  if (request.places) result.places = place_masses(row, grid, *place, request.band);
  if (!panel.wants_offsets()) return;
  for (int64_t t = 0; t < grid.frames(); ++t) {
    for (int64_t y = 0; y < grid.height(); ++y) {
      const float* line =
          entries + grid.video_range().begin + (t * grid.height() + y) * grid.width();
      kernels.add_scaled(line, grid.width(), factor, panel.offset_line(*place, t, y));
    }
  }
}

}  // namespace attnscope
