// DeviceHead's outputs: float32 weights of some keys at a time times V, by cuBLAS.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/stream/value_panels.h"
#include "kernels/cuda/host/head/device_head.h"

namespace attnscope::cuda {

/// Adds Σ P·V over all keys to `totals`, [panels, padded rows, kValueChannels]: float32 within a
/// block of keys, double across them.
void DeviceHead::output_step(Lane& lane, Rows& rows, const ValuePanels& values, bool scaled,
                             double* totals) const {
  const int padded_rows = rows.call.row_tiles * kTileRows;
  const int64_t elements = int64_t{padded_rows} * kValueChannels;
  // The step does not depend on how many rows there are, see Lane::multiply_values.
  const int step = std::min(step_tiles(Lane::kStoredRows / kTileRows), Lane::kStoredTiles);
  const auto blocks = static_cast<int>(ceil_div(int64_t{step} * kTileKeys, Lane::kValueKeys));
  float* const weights = lane.weights.get<float>(padded_rows * int64_t{step} * kTileKeys);
  float* const products = lane.value_blocks.get<float>(blocks * elements);
  // Rows beyond the last are not written by the kernel, but read by cuBLAS.
  lane.clear(weights, int64_t{padded_rows} * step * kTileKeys * 4);
  for (int tile = 0; tile < key_tiles_; tile += step) {
    const int end = std::min(tile + step, key_tiles_);
    const int64_t first_key = int64_t{tile} * kTileKeys;
    const int64_t keys = std::min(int64_t{end} * kTileKeys, values.keys) - first_key;
    load_mask(lane, rows, tile, end);
    make_products(lane, rows, tile);
    EmitArgs args;
    args.call = rows.call;
    args.scales = scaled ? static_cast<const RowScale*>(lane.scales.data()) : nullptr;
    args.first_tile = tile;
    args.end_tile = end;
    args.out = weights;
    args.stride = int64_t{step} * kTileKeys;
    emit_tiles(lane, rows, args, 1);
    const auto* const data = static_cast<const float*>(lane.values.data());
    for (int64_t panel = 0; panel < values.panels(); ++panel) {
      lane.multiply_values(weights, args.stride, rows.call.row_tiles,
                           data + (panel * values.keys + first_key) * kValueChannels, keys,
                           kValueChannels, products);
      const AddBlocksArgs add{elements, static_cast<int>(ceil_div(keys, Lane::kValueKeys)),
                              products, totals + panel * elements};
      lane.log().time(
          [&] {
            const auto bytes = static_cast<double>(elements * (add.blocks * 4 + 2 * 8));
            return LaunchWork{.kernel = "add blocks", .bytes = bytes};
          },
          [&] { check(launch_add_blocks(add, lane.stream()), "the outputs"); });
    }
  }
}

void DeviceHead::outputs(const QueryBlock& queries, std::span<RowNorm> norms,
                         const ValuePanels& values, const OutputTarget& target,
                         std::span<std::byte> workspace) const {
  if (is_signed(format_.score)) {
    throw usage_error(problem_.name() + ": backend cuda does not compute outputs of score " +
                      score_name(format_.score) + ": --backend cpu");
  }
  const auto elsewhere = [&](const BoundHead& head) {
    const QueryBlock rows = on_host(queries, workspace);
    head.outputs(rows, norms, values, target, workspace);
  };
  if (!trusts(KnownWork::outputs)) return elsewhere(fallback_head());
  const auto on_device = [&](Lane& lane) {
    const int64_t panels = values.panels();
    const auto count = static_cast<size_t>(panels * values.keys * kValueChannels);
    float* const on_device_values = lane.values.get<float>(static_cast<int64_t>(count));
    lane.upload(on_device_values, std::span(values.data, count));
    const auto total = static_cast<int64_t>(queries.index.size());
    const int most = std::min(step_rows(lane), Lane::kStoredRows);
    for (int64_t first = 0; first < total; first += most) {
      Rows rows = load_rows(lane, queries, first, std::min<int64_t>(most, total - first));
      if (!norms.empty()) {
        const StepNorms step = sum_step(lane, rows, false);
        std::copy(step.norms.begin(), step.norms.end(), norms.begin() + first);
        load_scales(lane, rows, step.norms);
      }
      const int64_t padded_rows = int64_t{rows.call.row_tiles} * kTileRows;
      const int64_t elements = panels * padded_rows * kValueChannels;
      double* const totals = lane.value_totals.get<double>(elements);
      lane.clear(totals, elements * 8);
      output_step(lane, rows, values, !norms.empty(), totals);
      std::vector<double> row_totals(static_cast<size_t>(rows.call.rows * kValueChannels));
      for (int64_t panel = 0; panel < panels; ++panel) {
        lane.download(std::span(row_totals), totals + panel * padded_rows * kValueChannels);
        const int64_t channel = panel * kValueChannels;
        for (int64_t row = 0; row < rows.call.rows; ++row) {
          for (int64_t c = 0; c < std::min(kValueChannels, values.width - channel); ++c) {
            const auto output =
                static_cast<float>(row_totals[static_cast<size_t>(row * kValueChannels + c)]);
            if (!std::isfinite(output)) {
              refuse_output(rows.index[static_cast<size_t>(row)], channel + c);
            }
            target.data[(first + row) * target.row_stride + channel + c] = output;
          }
        }
      }
    }
  };
  run(on_device, elsewhere);
}

void DeviceHead::refuse_output(int64_t row, int64_t channel) const {
  throw Error(ErrorCode::value, problem_.name() + ": head " + std::to_string(head_) + ", query " +
                                    std::to_string(row) + ", channel " + std::to_string(channel) +
                                    ": weights times values are more than float32 holds");
}

}  // namespace attnscope::cuda
