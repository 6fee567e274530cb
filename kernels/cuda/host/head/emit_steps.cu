// DeviceHead's entries: tiles go through two page-locked buffers, one filled while the other is
// emptied into the caller's memory.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/problem/signed_weights.h"
#include "kernels/common/emit_runs.h"
#include "kernels/cuda/host/head/device_head.h"
#include "kernels/cuda/host/plans/split_plan.h"

namespace attnscope::cuda {

struct DeviceHead::OutputStep {
  int64_t first = 0;  ///< of the rows, counted in the target
  IndexRange keys;
  Quantity quantity = Quantity::weights;
  const EmitTarget& target;
};

namespace {

/// Key tiles whose entries are on their way to the host.
struct PendingTiles {
  Lane::Slot* slot = nullptr;
  int first = 0;
  int end = 0;
};

IndexRange keys_of(int first_tile, int end_tile) {
  return {int64_t{first_tile} * kTileKeys, int64_t{end_tile} * kTileKeys};
}

}  // namespace

void DeviceHead::emit_step(Lane& lane, Rows& rows, std::span<const RowNorm> norms,
                           const OutputStep& output) const {
  const EmitTarget& target = output.target;
  const int64_t bytes = encoding_bytes(target.encoding);
  const auto columns = [&](int first, int end) {
    const IndexRange keys = intersect(keys_of(first, end), output.keys);
    return IndexRange{keys.begin - output.keys.begin, keys.end - output.keys.begin};
  };
  PendingTiles pending;
  const auto drain = [&] {
    if (pending.slot == nullptr) return;
    pending.slot->ready.wait();
    const IndexRange cols = columns(pending.first, pending.end);
    const int64_t stride = int64_t{pending.end - pending.first} * kTileKeys;
    const int64_t skipped = cols.begin + output.keys.begin - int64_t{pending.first} * kTileKeys;
    for (int64_t row = 0; row < rows.call.rows; ++row) {
      const std::byte* const from = pending.slot->pinned.data() + (row * stride + skipped) * bytes;
      for_each_run(target, output.first + row, cols, [&](const EmitRun& run) {
        std::memcpy(run.destination, from + (run.col - cols.begin) * bytes,
                    static_cast<size_t>(run.count * bytes));
      });
    }
    pending.slot = nullptr;
  };
  int resident = 1;
  check(kernels_.resident_blocks(format_.padded_dim, &resident), "the entries' occupancy");
  const int64_t tile_bytes = int64_t{rows.call.row_tiles} * kTileRows * kTileKeys * bytes;
  const int slot_tiles = static_cast<int>(std::max<int64_t>(1, lane.slot_bytes() / tile_bytes));
  const int step = step_tiles(rows.call.row_tiles);
  const auto end_tile = static_cast<int>(ceil_div(output.keys.end, kTileKeys));
  int turn = 0;
  for (auto tile = static_cast<int>(output.keys.begin / kTileKeys); tile < end_tile;) {
    const int step_end = std::min((tile / step + 1) * step, end_tile);
    bool prepared = false;
    for (; tile < step_end; tile = std::min(tile + slot_tiles, step_end)) {
      const int end = std::min(tile + slot_tiles, step_end);
      if (!wants_any(target, columns(tile, end))) continue;
      if (!prepared) {
        load_mask(lane, rows, tile, step_end);
        make_products(lane, rows, tile);
        prepared = true;
      }
      Lane::Slot& slot = lane.slot(turn);
      EmitArgs args;
      args.call = rows.call;
      args.scales = norms.empty() ? nullptr : static_cast<const RowScale*>(lane.scales.data());
      args.first_tile = tile;
      args.end_tile = end;
      args.logits = output.quantity == Quantity::logits;
      args.encoding = target.encoding;
      args.stride = int64_t{end - tile} * kTileKeys;
      args.out = slot.memory.get<std::byte>(tile_bytes * (end - tile));
      const SplitPlan plan =
          plan_splits(row_blocks(rows), end - tile, share_.device.multiprocessors(), resident);
      emit_tiles(lane, rows, args, plan.split_segments);
      lane.fetch(slot.pinned.data(), args.out, rows.call.rows * args.stride * bytes);
      slot.ready.record(lane.stream());
      drain();
      pending = {&slot, tile, end};
      turn = 1 - turn;
    }
  }
  drain();
}

void DeviceHead::emit_tiles(Lane& lane, const Rows& rows, const EmitArgs& args,
                            int split_tiles) const {
  lane.log().time([&] { return entries_work(args, split_tiles, facts_of(rows, kernels_.name)); },
                  [&] { check(kernels_.emit(args, split_tiles, lane.stream()), "the entries"); });
}

void DeviceHead::emit_all(Lane& lane, const QueryBlock& queries, std::span<const RowNorm> norms,
                          IndexRange keys, Quantity quantity, const EmitTarget& target) const {
  each_step(lane, queries, norms, [&](int64_t first, Rows& rows, std::span<const RowNorm> of_step) {
    emit_step(lane, rows, of_step, {first, keys, quantity, target});
  });
}

void DeviceHead::emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
                      Quantity quantity, const EmitTarget& target,
                      std::span<std::byte> workspace) const {
  if (quantity == Quantity::logits && is_linear(format_.score)) {
    throw usage_error(problem_.name() + ": score " + score_name(format_.score) + " has no logits");
  }
  if (quantity == Quantity::weights) require_one_sign(problem_, "what is asked of the device");
  assert(norms.size() ==
         (quantity == Quantity::weights && is_normalised_score() ? queries.index.size() : 0));
  run([&](Lane& lane) { emit_all(lane, queries, norms, keys, quantity, target); },
      [&](const BoundHead& head) {
        const QueryBlock rows = on_host(queries, workspace);
        head.emit(rows, norms, keys, quantity, target, workspace);
      });
}

void DeviceHead::emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                            const EmitTarget& target, std::span<std::byte> workspace) const {
  assert(is_normalised_score() && norms.size() == queries.index.size());
  run(
      [&](Lane& lane) {
        const auto total = static_cast<int64_t>(queries.index.size());
        const int most = step_rows(lane);
        for (int64_t first = 0; first < total; first += most) {
          const int64_t count = std::min<int64_t>(most, total - first);
          Rows rows = load_rows(lane, queries, first, count);
          const StepNorms step = sum_step(lane, rows, false);
          std::copy(step.norms.begin(), step.norms.end(), norms.begin() + first);
          load_scales(lane, rows, step.norms);
          emit_step(lane, rows, step.norms, {first, keys, Quantity::weights, target});
        }
      },
      [&](const BoundHead& head) {
        const QueryBlock rows = on_host(queries, workspace);
        head.emit_panel(rows, norms, keys, target, workspace);
      });
}

}  // namespace attnscope::cuda
