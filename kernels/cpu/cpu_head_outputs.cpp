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

/// Sums of a row group: [panels, rows, kValueChannels].
struct GroupTotals {
  double* data = nullptr;
  int64_t panels = 0;
  int64_t rows = 0;

  static int64_t size(int64_t panels, int64_t rows) { return panels * rows * kValueChannels; }
  double* channels(int64_t panel, int64_t row) const {
    return data + (panel * rows + row) * kValueChannels;
  }
};

void rescale(const GroupTotals& totals, int64_t row, double factor) {
  for (int64_t panel = 0; panel < totals.panels; ++panel) {
    double* channels = totals.channels(panel, row);
    for (int64_t c = 0; c < kValueChannels; ++c) channels[c] *= factor;
  }
}

}  // namespace

int64_t CpuHead::outputs_workspace_bytes(const PackedFormat& format, int64_t num_keys, int64_t rows,
                                         int64_t width) {
  Workspace counter;
  const Buffers buffers = take_buffers(format, num_keys, rows, 0, false, counter);
  const ValuePanels values{nullptr, num_keys, width};
  counter.take<double>(GroupTotals::size(values.panels(), buffers.rows));
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
  const int64_t stride = GroupTotals::size(values.panels(), buffers.group_rows);
  auto* const totals = pieces.take<double>(GroupTotals::size(values.panels(), buffers.rows));
  // Rows that are multiplied with V beside those of a group count for nothing, but must be numbers.
  std::fill_n(buffers.scratch.entries, buffers.group_rows * kBlockKeys, 0.0f);
  KeyProducts products(head_, all_blocks(), buffers.queries);
  for (int64_t first = 0; first < total; first += buffers.rows) {
    const Rows rows = load(queries, first, buffers.rows, buffers);
    start_sums(rows, buffers);
    std::fill_n(totals, rows.groups() * stride, 0.0);
    for (int64_t block = 0; block < head_.num_blocks(); ++block) {
      for (int64_t group = 0; group < rows.groups(); ++group) {
        add_outputs(rows, group, block, values, totals + group * stride, products, buffers);
      }
    }
    if (!norms.empty()) finish_sums(rows, buffers, norms);
    write_outputs(rows, norms, values, totals, target, buffers);
  }
}

void CpuHead::add_outputs(const Rows& rows, int64_t group, int64_t block, const ValuePanels& values,
                          double* totals, KeyProducts& products, const Buffers& buffers) const {
  const auto count = static_cast<int64_t>(rows.group(group).size());
  if (is_normalised(head_.format.score)) {
    const RowSum* const sums = buffers.sums + group * buffers.group_rows;
    RowSum before[kMaxGroupRows];
    std::copy_n(sums, count, before);
    if (!sum_block(rows, group, block, {}, {}, products, buffers)) return;
    // Totals follow the reference that entries are relative to; once anchored it only rises.
    const GroupTotals of_group{totals, values.panels(), buffers.group_rows};
    for (int64_t row = 0; row < count; ++row) {
      const int shift = static_cast<int>(before[row].reference - sums[row].reference);
      if (before[row].anchored && shift != 0) rescale(of_group, row, std::ldexp(1.0, shift));
    }
  } else {
    KeyBlockProduct meeting = meet(rows, group, block, products, buffers);
    if (meeting.empty()) return;
    meeting.set_output(buffers.scratch.entries, kBlockKeys);
    if (is_signed(head_.format.score)) {
      meeting.logits();
    } else {
      meeting.sigmoid();
    }
  }
  const IndexRange keys = head_.keys_of_block(block);
  head_.kernels.multiply_values({.weights = buffers.scratch.entries,
                                 .rows = round_up(count, kRegisterRows),
                                 .total_rows = buffers.group_rows,
                                 .keys = keys.size(),
                                 .values = values.row(0, keys.begin),
                                 .panel_stride = values.keys * kValueChannels,
                                 .panels = values.panels(),
                                 .totals = totals});
}

void CpuHead::write_outputs(const Rows& rows, std::span<const RowNorm> norms,
                            const ValuePanels& values, double* totals, const OutputTarget& target,
                            const Buffers& buffers) const {
  const int64_t stride = GroupTotals::size(values.panels(), buffers.group_rows);
  for (int64_t row = 0; row < rows.count(); ++row) {
    double factor = 1;
    if (!norms.empty()) {
      const RowNorm& norm = norms[static_cast<size_t>(rows.first + row)];
      const auto reference = static_cast<int64_t>(buffers.sums[row].reference);
      factor =
          norm.sum == 0 ? 0 : std::ldexp(1 / norm.sum, static_cast<int>(reference - norm.exponent));
    }
    const GroupTotals group{totals + row / buffers.group_rows * stride, values.panels(),
                            buffers.group_rows};
    float* const out = target.data + (rows.first + row) * target.row_stride;
    for (int64_t c = 0; c < values.width; ++c) {
      const double* const channels = group.channels(c / kValueChannels, row % buffers.group_rows);
      out[c] = static_cast<float>(channels[c % kValueChannels] * factor);
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
