// DeviceHead's texels: entries are pooled on the device, and only texels leave it.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/problem/signed_weights.h"
#include "kernels/cuda/host/head/device_head.h"
#include "kernels/cuda/host/plans/split_plan.h"

namespace attnscope::cuda {

struct DeviceHead::TexelStep {
  int64_t first = 0;  ///< row of texels of the target that the step begins with
  const TexelRequest& request;
  const TexelTarget& target;
};

namespace {

/// Texels of some key tiles that are on their way to the host.
struct PendingTexels {
  Lane::Slot* slot = nullptr;
  int64_t rows = 0;
  IndexRange cols;  ///< counted from key 0
};

/// Texels that the request has of the columns.
IndexRange wanted_of(const TexelRequest& request, IndexRange cols) {
  const int64_t side = int64_t{1} << request.level;
  return intersect(cols, {request.keys.begin / side, ceil_div(request.keys.end, side)});
}

void copy_texels(const PendingTexels& pending, int64_t first, const TexelRequest& request,
                 const TexelTarget& target) {
  const IndexRange cols = wanted_of(request, pending.cols);
  const int64_t left = request.keys.begin >> request.level;
  const auto* const max = reinterpret_cast<const float*>(pending.slot->pinned.data());
  const float* const mean = request.level == 0 ? max : max + pending.rows * pending.cols.size();
  const auto bytes = static_cast<size_t>(cols.size()) * sizeof(float);
  for (int64_t row = 0; row < pending.rows; ++row) {
    const int64_t from = row * pending.cols.size() + cols.begin - pending.cols.begin;
    const int64_t to = (first + row) * target.row_stride + cols.begin - left;
    std::memcpy(target.max + to, max + from, bytes);
    std::memcpy(target.mean + to, mean + from, bytes);
  }
}

}  // namespace

void DeviceHead::pool_step(Lane& lane, Rows& rows, std::span<const RowNorm> norms,
                           const TexelStep& step) const {
  const TexelRequest& request = step.request;
  const int64_t side = int64_t{1} << request.level;
  const int64_t texel_rows = ceil_div(rows.call.rows, side);
  const int64_t numbers = request.level == 0 ? 1 : 2;  // of a texel
  const int64_t tile_bytes =
      texel_rows * (kTileKeys / side) * numbers * static_cast<int64_t>(sizeof(float));
  const auto slot_tiles = static_cast<int>(std::max<int64_t>(1, lane.slot_bytes() / tile_bytes));
  PendingTexels pending;
  const auto drain = [&] {
    if (pending.slot == nullptr) return;
    pending.slot->ready.wait();
    copy_texels(pending, step.first, request, step.target);
    pending.slot = nullptr;
  };
  const int stride = step_tiles(rows.call.row_tiles);
  const auto end_tile = static_cast<int>(ceil_div(request.keys.end, kTileKeys));
  int turn = 0;
  for (auto tile = static_cast<int>(request.keys.begin / kTileKeys); tile < end_tile;) {
    const int step_end = std::min((tile / stride + 1) * stride, end_tile);
    load_mask(lane, rows, tile, step_end);
    make_products(lane, rows, tile);
    for (; tile < step_end; tile = std::min(tile + slot_tiles, step_end)) {
      const int end = std::min(tile + slot_tiles, step_end);
      Lane::Slot& slot = lane.slot(turn);
      TexelArgs args;
      args.call = rows.call;
      args.scales = norms.empty() ? nullptr : static_cast<const RowScale*>(lane.scales.data());
      args.first_tile = tile;
      args.end_tile = end;
      args.logits = request.quantity == Quantity::logits;
      args.level = request.level;
      args.stride = int64_t{end - tile} * kTileKeys / side;
      args.max = slot.memory.get<float>(texel_rows * args.stride * numbers);
      args.mean = request.level == 0 ? nullptr : args.max + texel_rows * args.stride;
      launch_texels(lane, rows, args, step);
      lane.fetch(slot.pinned.data(), args.max,
                 texel_rows * args.stride * numbers * static_cast<int64_t>(sizeof(float)));
      slot.ready.record(lane.stream());
      drain();
      pending = {&slot, texel_rows, {tile * kTileKeys / side, end * kTileKeys / side}};
      turn = 1 - turn;
    }
  }
  drain();
}

/// Queues the kernel; the device's copy of the texels is filled too as long as it is there.
void DeviceHead::launch_texels(Lane& lane, const Rows& rows, TexelArgs& args,
                               const TexelStep& step) const {
  int resident = 1;
  check(kernels_.resident_pools(format_.padded_dim, &resident), "the texels' occupancy");
  const SplitPlan plan = plan_splits(args.call.row_tiles, args.end_tile - args.first_tile,
                                     share_.device.multiprocessors(), resident);
  const auto launch = [&] {
    lane.log().time(
        [&] {
          return texels_work(args, plan.split_segments, facts_of(rows, kernels_.reduce_name));
        },
        [&] { check(kernels_.pool(args, plan.split_segments, lane.stream()), "the texels"); });
  };
  auto* const kept = dynamic_cast<KeptTexels*>(step.target.device);
  // A head that was bound anew may be on another device than its tile's first rows were.
  if (kept != nullptr && !kept->belongs_to(share_.texels)) kept->release();
  const bool both = kept != nullptr && kept->use([&](const TexelBuffer& buffer) {
    const IndexRange cols =
        wanted_of(step.request, {0, ceil_div(problem_.num_keys(), int64_t{1} << args.level)});
    args.first_texel = static_cast<int>(cols.begin);
    args.end_texel = static_cast<int>(std::min(cols.end, cols.begin + kept->cols()));
    args.pairs_stride = kept->cols();
    args.pairs = static_cast<uint32_t*>(buffer.memory) +
                 (step.target.device_row + step.first) * kept->cols();
    launch();
  });
  if (!both) launch();
}

bool DeviceHead::pool(const QueryBlock& queries, std::span<const RowNorm> norms,
                      const TexelRequest& request, const TexelTarget& target) const {
  if (request.quantity == Quantity::logits && is_linear(format_.score)) {
    throw usage_error(problem_.name() + ": score " + score_name(format_.score) + " has no logits");
  }
  if (request.quantity == Quantity::weights)
    require_one_sign(problem_, "what is asked of the device");
  const int64_t side = int64_t{1} << request.level;
  assert(request.level >= 0 && request.level <= kMostTexelLevel);
  assert(request.keys.begin % side == 0 &&
         (request.keys.end % side == 0 || request.keys.end == problem_.num_keys()));
  if (!is_on_device() || !trusts(KnownWork::texels)) return false;
  return try_on_device([&](Lane& lane) {
    // Steps are whole tiles of rows, and so whole texels.
    each_step(lane, queries, norms,
              [&](int64_t first, Rows& rows, std::span<const RowNorm> of_step) {
                pool_step(lane, rows, of_step, {first / side, request, target});
              });
  });
}

}  // namespace attnscope::cuda
