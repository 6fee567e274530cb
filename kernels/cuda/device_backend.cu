#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/error.h"
#include "kernels/cuda/device_backend.h"
#include "kernels/cuda/device_head.h"
#include "kernels/cuda/known_answers.h"
#include "kernels/cuda/reduce_plan.h"

namespace attnscope {
namespace cuda {
namespace {

/// Workers of a device: one fills it while others' results are on their way and are written.
constexpr int kLanes = 4;
/// Rows of a panel that is reduced at once.
constexpr int64_t kPanelRows = 1536;

class DeviceBackend : public TileBackend {
 public:
  DeviceBackend(const CudaModuleOptions& options, int devices)
      : fallback_(options.fallback),
        lanes_(options.threads > 0 ? std::min(options.threads, kLanes) : kLanes),
        notice_([this, tell = options.notice](const std::string& line) {
          const std::lock_guard lock(notice_mutex_);
          if (tell) tell(line);
        }) {
    for (int i = 0; i < devices; ++i) {
      shares_.push_back(std::make_unique<DeviceShare>(i, options, lanes_));
      const Device& device = shares_.back()->device;
      if (options.kernels == DeviceKernels::mma) require_mma(device);
      if (options.tf32 && !shares_.back()->tf32) {
        notice_("cuda: " + device.name() +
                " has no TF32: float32 tensors are multiplied as they are");
      }
    }
  }

  std::string name() const override { return tf32() ? "cuda-tf32" : kernels_name(); }
  std::string name_for(const AttentionProblem& problem) const override {
    return tf32() && problem.q().dtype() == DType::f32 ? "cuda-tf32" : kernels_name();
  }

  std::string description() const override {
    std::string names;
    for (const auto& share : shares_) {
      names += (names.empty() ? "" : ", ") + share->device.name();
    }
    return "cuda (" + names + ", " + std::to_string(workers()) + " workers)";
  }

  int workers() const override { return lanes_ * static_cast<int>(shares_.size()); }
  int64_t whole_panel_rows() const override { return kPanelRows; }

  BindCost bind_cost(const AttentionProblem& problem) const override {
    const BindCost elsewhere = fallback_->bind_cost(problem);
    // Page-locked memory is there from the first call on, whatever is bound.
    const int64_t pinned = workers() * Lane::kPinnedBytes +
                           static_cast<int64_t>(shares_.size()) * KeyUploader::kPinnedBytes;
    return {elsewhere.resident,
            pinned + std::max(elsewhere.transient,
                              KeyUploader::transient_bytes(HeadFormat::of(problem)))};
  }

  int64_t workspace_bytes(const AttentionProblem& problem, int64_t rows, int64_t cols,
                          bool one_product) const override {
    const int64_t elsewhere = fallback_->workspace_bytes(problem, rows, cols, one_product);
    // Only reductions, which want the rows of all keys, need memory of the caller's.
    const bool reduces = one_product && cols == problem.num_keys();
    return std::max(elsewhere, reduces ? ReducePlan::host_bytes(problem, rows) : 0);
  }

  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const override {
    return fallback_->outputs_workspace_bytes(problem, rows);
  }

  std::vector<LaunchProfile> launch_profile() const override {
    std::vector<LaunchProfile> all;
    for (const auto& share : shares_) {
      for (LaunchProfile& profile : share->totals.profiles()) all.push_back(std::move(profile));
    }
    return all;
  }
  /// Whatever was computed so far is nobody's concern.
  void begin_use() {
    for (const auto& share : shares_) share->totals.clear();
    in_use_ = true;
  }
  bool tf32() const {
    return std::any_of(shares_.begin(), shares_.end(), [](const auto& s) { return s->tf32; });
  }

  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    DeviceShare& share = *shares_[next_++ % shares_.size()];
    if (in_use_ && tf32() && problem.q().dtype() != DType::f32 && !told_of_tf32_.exchange(true)) {
      notice_("cuda: --tf32 changes nothing for " + std::string(dtype_name(problem.q().dtype())) +
              " tensors");
    }
    return std::make_unique<DeviceHead>(problem, batch, head, share, *fallback_, notice_);
  }

 private:
  static bool has_mma(const Device& device) {
    return mma_f16_kernels() != nullptr && device.capability() >= mma_f16_kernels()->capability;
  }
  static void require_mma(const Device& device) {
    if (has_mma(device)) return;
    const std::string capability =
        std::to_string(device.capability() / 10) + "." + std::to_string(device.capability() % 10);
    throw Error(
        ErrorCode::unavailable,
        "backend cuda-mma: " + (mma_f16_kernels() == nullptr
                                    ? "this build has no mma kernels (it was made without CuTe)"
                                    : device.name() + " has compute capability " + capability +
                                          ", the kernels need 8.0"));
  }
  std::string kernels_name() const {
    const bool mma = shares_.front()->kernels != DeviceKernels::cublas;
    return mma && has_mma(shares_.front()->device) ? "cuda-mma" : "cuda-cublas";
  }

  const std::shared_ptr<const TileBackend> fallback_;
  const int lanes_;
  std::mutex notice_mutex_;
  const DeviceHead::Notice notice_;
  std::vector<std::unique_ptr<DeviceShare>> shares_;
  mutable std::atomic<size_t> next_{0};
  bool in_use_ = false;
  mutable std::atomic<bool> told_of_tf32_{false};
};

}  // namespace
}  // namespace cuda

std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions& options) {
  int devices = 0;
  cuda::check(cudaGetDeviceCount(&devices), "counting devices");
  if (devices == 0) throw Error(ErrorCode::unavailable, "cuda: there is no device");
  if (options.kernels == DeviceKernels::wgmma) {
    throw Error(ErrorCode::unavailable, "backend cuda-wgmma: this build has no wgmma kernels");
  }
  try {
    auto backend = std::make_unique<cuda::DeviceBackend>(options, devices);
    // Heads go to the devices in turn.
    for (int i = 0; i < devices; ++i) {
      check_known_answers(*backend, *options.fallback, backend->tf32());
    }
    backend->begin_use();
    return backend;
  } catch (const cuda::OutOfDeviceMemory&) {
    throw Error(ErrorCode::unavailable, "cuda: no memory is left on the device to open it with");
  }
}

}  // namespace attnscope
