#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/error.h"
#include "kernels/cuda/device_backend.h"
#include "kernels/cuda/device_head.h"
#include "kernels/cuda/gl_link.h"
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
      shares_.push_back(std::make_unique<DeviceShare>(i, options.vram_bytes, lanes_));
    }
  }

  /// Of the kernels that tensors of 16 bits take on the first device.
  std::string name() const override {
    const DeviceShare& share = *shares_.front();
    const auto runs = [&](const KernelSet* set) {
      return set != nullptr && set->runs_on(share.device.capability());
    };
    if (share.wgmma && runs(wgmma_f16_kernels())) return "cuda-wgmma";
    return runs(mma_f16_kernels()) ? "cuda-mma" : "cuda-cublas";
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

  /// Every device computes small maps whose weights are known. One whose wgmma kernels fail that is
  /// given the others. Throws Error(unavailable).
  void check_devices() {
    for (const auto& share : shares_) {
      only_ = share.get();
      try {
        check_known_answers(*this, *fallback_);
      } catch (const Error& error) {
        const KernelSet* const set = wgmma_f16_kernels();
        if (set == nullptr || !set->runs_on(share->device.capability())) throw;
        notice_(std::string("cuda: wgmma is not used: ") + error.what());
        share->wgmma = false;
        check_known_answers(*this, *fallback_);
      }
    }
    only_ = nullptr;
  }

  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    // Heads go to the devices in turn.
    DeviceShare& share = only_ != nullptr ? *only_ : *shares_[next_++ % shares_.size()];
    return std::make_unique<DeviceHead>(problem, batch, head, share, *fallback_, notice_);
  }

  std::unique_ptr<TextureLink> link_textures() const override {
    const int device = window_device();
    for (const auto& share : shares_) {
      if (share->device.index() == device) return make_gl_link(share->device, share->texels);
    }
    throw Error(ErrorCode::unavailable,
                "cuda: the device that draws the window is not used for arithmetic");
  }

 private:
  const std::shared_ptr<const TileBackend> fallback_;
  const int lanes_;
  std::mutex notice_mutex_;
  const DeviceHead::Notice notice_;
  std::vector<std::unique_ptr<DeviceShare>> shares_;
  mutable std::atomic<size_t> next_{0};
  DeviceShare* only_ = nullptr;  ///< gets all heads, while devices are checked
};

}  // namespace
}  // namespace cuda

std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions& options) {
  int devices = 0;
  cuda::check(cudaGetDeviceCount(&devices), "counting devices");
  if (devices == 0) throw Error(ErrorCode::unavailable, "cuda: there is no device");
  try {
    auto backend = std::make_unique<cuda::DeviceBackend>(options, devices);
    backend->check_devices();
    return backend;
  } catch (const cuda::OutOfDeviceMemory&) {
    throw Error(ErrorCode::unavailable, "cuda: no memory is left on the device to open it with");
  }
}

}  // namespace attnscope
