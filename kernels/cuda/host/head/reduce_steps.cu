// DeviceHead's reductions: sums over rows stay on the device until a whole panel is done.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/problem/signed_weights.h"
#include "core/reduce/panel_reduction.h"
#include "kernels/cuda/host/head/device_head.h"
#include "kernels/cuda/host/head/reduce_plan.h"

namespace attnscope::cuda {

/// The results of a call on the host; the panel takes them when nothing can fail any more.
struct DeviceHead::ReduceStep {
  const ReducePlan& plan;
  ReduceArgs args;  ///< what all steps share: buffers, key places, runs
  ReduceResults& results;
};

void DeviceHead::reduce_step(Lane& lane, Rows& rows, int64_t first, ReduceStep& step) const {
  const ReducePlan& plan = step.plan;
  StepNorms sums;
  if (is_normalised_score()) {
    sums = sum_step(lane, rows, plan.wants_moments());
    load_scales(lane, rows, sums.norms);
  }
  const auto count = static_cast<int64_t>(rows.index.size());
  const int64_t stride = int64_t{rows.call.row_tiles} * kTileRows;
  const std::vector<RowFacts> facts = plan.row_facts(first, count, stride);
  RowFacts* const device_facts = lane.row_facts.get<RowFacts>(stride);
  lane.upload(device_facts, std::span<const RowFacts>(facts));
  ReduceArgs args = step.args;
  args.rows = device_facts;
  args.scales = is_normalised_score() ? static_cast<const RowScale*>(lane.scales.data()) : nullptr;
  if (plan.wants_row_sums()) {
    args.row_sums = lane.row_sums.get<TileRowSums>(key_tiles_ * stride);
    args.masses = lane.masses.get<float>(plan.run_count() * stride);
  }
  const int step_size = step_tiles(rows.call.row_tiles);
  const IndexRange wanted = plan.key_tiles();
  for (auto tile = static_cast<int>(wanted.begin); tile < wanted.end;) {
    const int end = std::min((tile / step_size + 1) * step_size, static_cast<int>(wanted.end));
    load_mask(lane, rows, tile, end);
    make_products(lane, rows, tile);
    args.call = rows.call;
    args.first_tile = tile;
    args.end_tile = end;
    lane.log().time([&] { return reductions_work(args, facts_of(rows, kernels_.reduce_name)); },
                    [&] { check(kernels_.reduce(args, lane.stream()), "the reductions"); });
    tile = end;
  }
  std::vector<RowTotals> totals;
  if (plan.wants_row_sums()) {
    CombineArgs combine;
    combine.rows = rows.call.rows;
    combine.stride = stride;
    combine.first_tile = static_cast<int>(wanted.begin);
    combine.end_tile = static_cast<int>(wanted.end);
    combine.row_sums = args.row_sums;
    combine.runs = args.runs;
    combine.masses = args.masses;
    combine.run_count = static_cast<int>(plan.run_count());
    combine.segments = static_cast<int>(plan.segments());
    combine.totals = lane.totals.get<RowTotals>(count);
    combine.row_masses = lane.row_masses.get<double>(count * plan.segments());
    lane.log().time([&] { return combine_tiles_work(combine); },
                    [&] { check(launch_combine_tiles(combine, lane.stream()), "the row totals"); });
    totals.resize(static_cast<size_t>(count));
    lane.download(std::span(totals), combine.totals);
    lane.download(step.results.masses.subspan(static_cast<size_t>(first * plan.segments()),
                                              static_cast<size_t>(count * plan.segments())),
                  combine.row_masses);
  }
  lane.finish();
  plan.keep_rows(first, totals, sums.norms, sums.entropy, step.results);
}

/// Float32 weights of some rows of a panel, [rows, num_keys].
void DeviceHead::fetch_weights(Lane& lane, const QueryBlock& queries,
                               std::span<const RowReduction> panel, std::span<const int64_t> rows,
                               std::span<float> to) const {
  const auto row_bytes = static_cast<size_t>(format_.source_row_bytes());
  std::vector<std::byte> data;
  std::vector<int64_t> index;
  std::vector<RowNorm> norms;
  for (const int64_t row : rows) {
    const auto at = static_cast<size_t>(row);
    if (queries.data != nullptr) {
      const std::byte* const from = queries.data + at * row_bytes;
      data.insert(data.end(), from, from + row_bytes);
    }
    index.push_back(queries.index[at]);
    if (is_normalised_score()) norms.push_back(panel[at].norm);
  }
  std::byte* const block = reinterpret_cast<std::byte*>(to.data());
  const int64_t keys = problem_.num_keys();
  emit_all(lane, {queries.data == nullptr ? nullptr : data.data(), index}, norms, {0, keys},
           Quantity::weights, {{&block, 1}, keys, keys, Encoding::f32});
}

/// Devices of compute capability 7.5 give a block 64 KiB, less than a tile of weights takes.
bool DeviceHead::reduces_here() const {
  const int64_t needed = kernels_.shared_bytes(format_.padded_dim);
  const int64_t given = share_.device.block_shared_bytes();
  if (needed <= given) return true;
  std::call_once(share_.told_of_reductions, [&] {
    if (!notice_) return;
    notice_("cuda: " + share_.device.name() + " gives a block " + std::to_string(given >> 10) +
            " KiB of shared memory, reductions need " + std::to_string(ceil_div(needed, 1024)) +
            ": they are computed on the CPU");
  });
  return false;
}

void DeviceHead::reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
                        std::span<std::byte> workspace) const {
  require_one_sign(problem_, "what a map adds up to");
  const auto total = static_cast<int64_t>(queries.index.size());
  assert(first == 0 && total == panel.num_rows());
  const auto elsewhere = [&](const BoundHead& head) {
    const QueryBlock rows = on_host(queries, workspace);
    head.reduce(rows, first, panel, workspace);
  };
  if (!reduces_here() || !trusts(KnownWork::reductions)) return elsewhere(fallback_head());
  const ReducePlan plan(problem_, panel);
  run(
      [&](Lane& lane) {
        Workspace pieces(workspace);
        ReduceResults results = plan.take_results(pieces);
        ReduceStep step{plan, {}, results};
        plan.load(lane, step.args);
        const int most = step_rows(lane);
        for (int64_t begin = 0; begin < total; begin += most) {
          Rows rows = load_rows(lane, queries, begin, std::min<int64_t>(most, total - begin));
          reduce_step(lane, rows, begin, step);
        }
        plan.download(lane, step.args, results);
        plan.count_shares(
            [&](std::span<const int64_t> rows, std::span<float> to) {
              fetch_weights(lane, queries, results.rows, rows, to);
            },
            results);
        plan.give(lane, step.args, results, panel);
      },
      elsewhere);
}

}  // namespace attnscope::cuda
