// CpuHead::outputs: the entries of a row group and a key block are multiplied with V while they are
// in the core's nearest cache, so that no map is kept at all.
#include "kernels/cpu/cpu_head.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/base/error.h"
#include "core/stream/value_panels.h"
#include "kernels/common/flush_denormals.h"

namespace attnscope {
namespace {

/// Doubles that the sums of a row group take.
int64_t group_totals(int64_t panels) { return panels * kGroupRows * kValueChannels; }

void rescale(double* totals, int64_t panels, int64_t row, double factor) {
  for (int64_t panel = 0; panel < panels; ++panel) {
    double* channels = totals + (panel * kGroupRows + row) * kValueChannels;
    for (int64_t c = 0; c < kValueChannels; ++c) channels[c] *= factor;
  }
}

}  // namespace

int64_t CpuHead::outputs_workspace_bytes(const PackedFormat& format, int64_t num_keys, int64_t rows,
                                         int64_t width) {
  Workspace counter;
  const Buffers buffers = take_buffers(format, num_keys, rows, 0, false, counter);
  const ValuePanels values{nullptr, num_keys, width};
  counter.take<double>(buffers.rows / kGroupRows * group_totals(values.panels()));
  return counter.bytes_needed();
}

void CpuHead::outputs(const QueryBlock& queries, std::span<RowNorm> norms,
                      const ValuePanels& values, const OutputTarget& target,
                      std::span<std::byte> workspace) const {
  assert(norms.size() == (is_normalised(head_.format.score) ? queries.index.size() : 0));
  assert(values.keys == head_.num_keys());
  const FlushDenormals flush;
  const auto total = static_cast<int64_t>(queries.index.size());
  Workspace pieces(workspace);
  const Buffers buffers = take_buffers(head_.format, head_.num_keys(), total, 0, false, pieces);
  const int64_t stride = group_totals(values.panels());
  auto* const totals = pieces.take<double>(buffers.rows / kGroupRows * stride);
  for (int64_t first = 0; first < total; first += buffers.rows) {
    const Rows rows = load(queries, first, buffers.rows, buffers);
    start_sums(rows, buffers);
    std::fill_n(totals, rows.groups() * stride, 0.0);
    for (int64_t block = 0; block < head_.num_blocks(); ++block) {
      for (int64_t group = 0; group < rows.groups(); ++group) {
        add_outputs(rows, group, block, values, totals + group * stride, buffers);
      }
    }
    if (!norms.empty()) finish_sums(rows, buffers, norms);
    write_outputs(rows, norms, values, totals, target, buffers);
  }
}

void CpuHead::add_outputs(const Rows& rows, int64_t group, int64_t block, const ValuePanels& values,
                          double* totals, const Buffers& buffers) const {
  if (is_normalised(head_.format.score)) {
    const RowSum* const sums = buffers.sums + group * kGroupRows;
    RowSum before[kGroupRows];
    std::copy_n(sums, kGroupRows, before);
    if (!sum_block(rows, group, block, {}, false, buffers)) return;
    // Totals follow the reference that entries are relative to; once anchored it only rises.
    for (int64_t row = 0; row < kGroupRows; ++row) {
      const int shift = static_cast<int>(before[row].reference - sums[row].reference);
      if (before[row].anchored && shift != 0) {
        rescale(totals, values.panels(), row, std::ldexp(1.0, shift));
      }
    }
  } else {
    KeyBlockProduct meeting = meet(rows, group, block, buffers);
    if (meeting.empty()) return;
    meeting.set_output(buffers.scratch.entries, kBlockKeys);
    meeting.sigmoid();
  }
  const IndexRange keys = head_.keys_of_block(block);
  head_.kernels.multiply_values({.weights = buffers.scratch.entries,
                                 .keys = keys.size(),
                                 .values = values.row(0, keys.begin),
                                 .panel_stride = values.keys * kValueChannels,
                                 .panels = values.panels(),
                                 .totals = totals});
}

void CpuHead::write_outputs(const Rows& rows, std::span<const RowNorm> norms,
                            const ValuePanels& values, const double* totals,
                            const OutputTarget& target, const Buffers& buffers) const {
  for (int64_t row = 0; row < rows.count(); ++row) {
    double factor = 1;
    if (!norms.empty()) {
      const RowNorm& norm = norms[static_cast<size_t>(rows.first + row)];
      const auto reference = static_cast<int64_t>(buffers.sums[row].reference);
      factor =
          norm.sum == 0 ? 0 : std::ldexp(1 / norm.sum, static_cast<int>(reference - norm.exponent));
    }
    const double* const group = totals + row / kGroupRows * group_totals(values.panels());
    float* const out = target.data + (rows.first + row) * target.row_stride;
    for (int64_t c = 0; c < values.width; ++c) {
      const int64_t panel = c / kValueChannels;
      const int64_t at =
          (panel * kGroupRows + row % kGroupRows) * kValueChannels + c % kValueChannels;
      out[c] = static_cast<float>(group[at] * factor);
      if (!std::isfinite(out[c])) refuse_output(rows.index[static_cast<size_t>(row)], c);
    }
  }
}

void CpuHead::refuse_output(int64_t row, int64_t channel) const {
  throw Error(ErrorCode::value, head_.problem.name() + ": head " + std::to_string(head_.head) +
                                    ", query " + std::to_string(row) + ", channel " +
                                    std::to_string(channel) +
                                    ": weights times values are more than float32 holds");
}

}  // namespace attnscope
