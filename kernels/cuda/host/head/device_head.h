#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/reduce/reduction.h"
#include "core/stream/device_texels.h"
#include "core/stream/tile_backend.h"
#include "kernels/common/positive_features.h"
#include "kernels/cuda/host/head/lane.h"
#include "kernels/cuda/host/plans/mask_tiles.h"
#include "kernels/cuda/host/tensors/device_keys.h"
#include "kernels/cuda/host/tensors/fetched_rows.h"
#include "kernels/cuda/host/tensors/key_memory.h"
#include "kernels/cuda/host/textures/texel_keeper.h"
#include "kernels/cuda/host/trust/verdicts.h"
#include "kernels/cuda/kernel/kernel_set.h"
#include "kernels/cuda/module.h"

namespace attnscope::cuda {

/// A device with everything that its heads share.
struct DeviceShare {
  DeviceShare(int index, const CudaModuleOptions& options, int lanes)
      : kernels(options.kernels),
        device(index, options.vram_bytes, options.vram_share),
        key_memory(device),
        texels(device),
        tf32(options.tf32 && device.capability() >= kTf32Capability),
        totals(device),
        uploader(device, key_memory, options.profile ? &totals : nullptr),
        pool(device, lanes, options.profile ? &totals : nullptr),
        wgmma(kernels == DeviceKernels::automatic || kernels == DeviceKernels::wgmma) {}

  static constexpr int kTf32Capability = 80;

  const DeviceKernels kernels;
  Device device;
  KeyMemory key_memory;  ///< given back before texels are, where memory is short
  TexelKeeper texels;
  const bool tf32;  ///< float32 tensors are multiplied in TF32
  LaunchTotals totals;
  KeyUploader uploader;
  LanePool pool;
  /// True where wgmma may be used if the device has it; not changed while heads are bound.
  bool wgmma;
  Verdicts verdicts;
  std::once_flag told_of_reductions;  ///< that they are computed elsewhere

  /// True of a line that nobody was told before. Remembers it.
  bool is_news(const std::string& line) {
    const std::lock_guard lock(told_mutex_);
    return told_.insert(line).second;
  }

 private:
  std::mutex told_mutex_;
  std::set<std::string> told_;
};

/// One head whose keys lie on a device. Calls go through a lane in steps of rows and key tiles; a
/// step that does not fit the device's memory is tried again with half the rows, and when even the
/// smallest does not fit, the call is the fallback's.
class DeviceHead : public BoundHead, public TexelPooler {
 public:
  using Notice = std::function<void(const std::string&)>;
  /// True of work that may be done here, false of the fallback's; empty: all may.
  using Trust = std::function<bool(KnownWork)>;
  /// Where a head is computed. Borrows.
  struct Place {
    DeviceShare& share;
    const KernelSet& kernels;
    const TileBackend& fallback;
    const Notice& notice;
  };

  DeviceHead(const AttentionProblem& problem, int64_t batch, int64_t head, const Place& place,
             Trust trust);

  /// Where the rows lie in a device's memory from which they come straight.
  bool fetches_queries() const override { return is_on_device() && query_way_ != RowsWay::host; }
  void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                 std::span<std::byte> workspace) const override;
  void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
            Quantity quantity, const EmitTarget& target,
            std::span<std::byte> workspace) const override;
  void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                  const EmitTarget& target, std::span<std::byte> workspace) const override;
  void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
              std::span<std::byte> workspace) const override;
  void outputs(const QueryBlock& queries, std::span<RowNorm> norms, const ValuePanels& values,
               const OutputTarget& target, std::span<std::byte> workspace) const override;

  int most_level() const override { return kMostTexelLevel; }
  bool pool(const QueryBlock& queries, std::span<const RowNorm> norms, const TexelRequest& request,
            const TexelTarget& target) const override;
  std::shared_ptr<DeviceTexels> make_texels(int64_t rows, int64_t cols) const override {
    return share_.texels.make(rows, cols);
  }

  /// The kernels that a problem's heads take on this device.
  static const KernelSet& kernels_for(const AttentionProblem& problem, const DeviceShare& share);
  /// The kernels for tensors of this type, of a usual width, that are no features.
  static const KernelSet& kernels_for_type(DType dtype, const DeviceShare& share);
  /// The type of tensors as which they come to the kernels: features are float32.
  static DType type_for(const AttentionProblem& problem);
  /// Rows of one launch of their row sums where nothing else is wanted of the rows: as many as the
  /// parts of their sums leave room for in a fixed part of the device's memory, which fill any
  /// device. 0: as many as for other steps.
  static int64_t norm_rows(const AttentionProblem& problem, const KernelSet& kernels);
  /// Rows at most for whose norms alone the fallback is called at once.
  static constexpr int64_t kFallbackRows = 384;
  /// Workspace of calls with so many rows in which the fallback gets rows that nobody has read:
  /// what a call's own needs come to is beside it.
  static int64_t host_query_bytes(const AttentionProblem& problem, int64_t rows);

 private:
  /// Query rows of one step.
  struct Rows {
    CallArgs call;
    std::span<const int64_t> index;
    std::vector<int> exponents;        ///< what features were divided by
    IndexRange masked_tiles;           ///< key tiles whose mask is on the device
    std::vector<MaskedColumn> masked;  ///< of these, where launches are timed
  };
  /// The normalisers that scale the weights of a step; `norms` are empty for sigmoid.
  struct StepNorms {
    std::vector<RowNorm> norms;
    std::vector<double> entropy;  ///< nats; empty where sums came without moments
  };
  struct OutputStep;
  struct ReduceStep;

  // device_head.cu
  bool is_on_device() const { return keys_ != nullptr; }
  bool trusts(KnownWork work) const { return !trust_ || trust_(work); }
  void run(const std::function<void(Lane&)>& on_device,
           const std::function<void(const BoundHead&)>& elsewhere) const;
  /// False: the device's memory does not suffice.
  bool try_on_device(const std::function<void(Lane&)>& on_device) const;
  const BoundHead& fallback_head() const;
  int step_rows(const Lane& lane) const;
  int norm_step_rows(const Lane& lane) const;
  int step_tiles(int row_tiles) const;
  void load_mask(Lane& lane, Rows& rows, int first_tile, int end_tile) const;
  void make_products(Lane& lane, Rows& rows, int tile) const;
  const int32_t* find_held(Lane& lane, const Rows& rows) const;
  int row_blocks(const Rows& rows) const;
  StepNorms sum_step(Lane& lane, Rows& rows, bool moments) const;
  StepNorms finish_sums(Lane& lane, const Rows& rows, int segments, bool moments) const;
  /// `product`: what multiplies.
  CallFacts facts_of(const Rows& rows, const char* product) const;
  RowNorm norm_of(const Rows& rows, size_t row, const RowPart& part) const;
  void load_scales(Lane& lane, const Rows& rows, std::span<const RowNorm> norms) const;
  bool is_normalised_score() const { return is_normalised(format_.score); }
  [[noreturn]] void refuse_row(int64_t row) const;
  [[noreturn]] void refuse_held_sum(int64_t row, double sum) const;

  void tell_of_host_way(const HeadTensor& tensor) const;

  // device_queries.cu
  Rows load_rows(Lane& lane, const QueryBlock& queries, int64_t first, int64_t count) const;
  void upload_features(Lane& lane, const std::byte* source, Rows& rows, std::byte* to) const;
  void fetch_queries(Lane& lane, std::span<const int64_t> index, std::byte* to) const;
  /// The rows for the fallback: where nobody has read them they are read now, to the end of the
  /// workspace, which is what is left of it then.
  QueryBlock on_host(const QueryBlock& queries, std::span<std::byte>& workspace) const;

  // output_steps.cu
  void output_step(Lane& lane, Rows& rows, const ValuePanels& values, bool scaled,
                   double* totals) const;
  [[noreturn]] void refuse_output(int64_t row, int64_t channel) const;

  /// Calls take(first row of the step, its rows, their norms) for as many rows at a time as the
  /// lane has room for; `norms` may be empty, and then scales are not loaded.
  template <typename Take>
  void each_step(Lane& lane, const QueryBlock& queries, std::span<const RowNorm> norms,
                 const Take& take) const {
    const auto total = static_cast<int64_t>(queries.index.size());
    const int64_t most = step_rows(lane);
    for (int64_t first = 0; first < total; first += most) {
      const int64_t count = std::min(most, total - first);
      Rows rows = load_rows(lane, queries, first, count);
      const auto of_step =
          norms.empty() ? norms
                        : norms.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
      if (!of_step.empty()) load_scales(lane, rows, of_step);
      take(first, rows, of_step);
    }
  }
  // emit_steps.cu
  void emit_step(Lane& lane, Rows& rows, std::span<const RowNorm> norms,
                 const OutputStep& output) const;
  void emit_tiles(Lane& lane, const Rows& rows, const EmitArgs& args, int split_tiles) const;
  void emit_all(Lane& lane, const QueryBlock& queries, std::span<const RowNorm> norms,
                IndexRange keys, Quantity quantity, const EmitTarget& target) const;

  // texel_steps.cu
  struct TexelStep;
  void pool_step(Lane& lane, Rows& rows, std::span<const RowNorm> norms,
                 const TexelStep& step) const;
  void launch_texels(Lane& lane, const Rows& rows, TexelArgs& args, const TexelStep& step) const;

  // reduce_steps.cu
  bool reduces_here() const;
  void reduce_step(Lane& lane, Rows& rows, int64_t first, ReduceStep& step) const;
  void fetch_weights(Lane& lane, const QueryBlock& queries, std::span<const RowReduction> panel,
                     std::span<const int64_t> rows, std::span<float> to) const;

  const AttentionProblem& problem_;
  const int64_t batch_, head_;
  DeviceShare& share_;
  const TileBackend& fallback_;
  const Notice& notice_;
  const KernelSet& kernels_;
  const Trust trust_;
  const HeadFormat format_;
  const PositiveFeatures features_;
  const int key_tiles_;
  const int stored_tiles_;                      ///< key tiles of one product of cuBLAS
  const std::optional<DeviceRows> query_rows_;  ///< where they lie in a device's memory
  const RowsWay query_way_;
  KeyMemory::Held keys_;  ///< null where there is no room for them
  int key_exponent_ = 0;
  float most_held_ = -1;  ///< see most_held_length
  mutable std::once_flag fallback_once_;
  mutable std::unique_ptr<BoundHead> fallback_head_;
};

}  // namespace attnscope::cuda
