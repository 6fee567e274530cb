#include "kernels/cuda/host/device_backend.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>

#include "core/base/error.h"
#include "core/stream/device_facet.h"
#include "kernels/cuda/host/devices/kernel_choice.h"
#include "kernels/cuda/host/devices/unusable.h"
#include "kernels/cuda/host/head/device_head.h"
#include "kernels/cuda/host/head/reduce_plan.h"
#include "kernels/cuda/host/textures/gl_link.h"
#include "kernels/cuda/host/trust/known_answers.h"

namespace attnscope {
namespace cuda {
namespace {

/// Workers of a device: one fills it while others' results are on their way and are written.
constexpr int kLanes = 4;
/// Rows of a panel that is reduced at once.
constexpr int64_t kPanelRows = 1536;

class DeviceBackend : public TileBackend, public DeviceFacet {
 public:
  DeviceBackend(const CudaModuleOptions& options, int devices)
      : fallback_(options.fallback),
        lanes_(options.threads > 0 ? std::min(options.threads, kLanes) : kLanes),
        notice_([this, tell = options.notice](const std::string& line) {
          const std::lock_guard lock(notice_mutex_);
          if (tell) tell(line);
        }) {
    for (int i = 0; i < devices; ++i) {
      if (!takes_device(i, devices, options.task, options.tasks)) continue;
      try_device(i, [&] {
        auto share = std::make_unique<DeviceShare>(i, options, lanes_);
        require_kernels(options.kernels, share->device);
        shares_.push_back(std::move(share));
      });
    }
    require_some();
    tell_of_missing_kernels(options.kernels);
    for (const auto& share : shares_) {
      if (!options.tf32 || share->tf32) continue;
      notice_("cuda: " + share->device.name() +
              " has no TF32: float32 tensors are multiplied as they are");
    }
  }

  std::string name() const override { return tf32() ? "cuda-tf32" : kernels_name(); }
  std::string name_for(const AttentionProblem& problem) const override {
    if (is_for_the_host(problem)) return fallback_->name_for(problem);
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
  int64_t open_units() const override { return fallback_->open_units(); }

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
    // Norms alone may be those of thousands of rows: the fallback gets them in pieces.
    const bool norms = cols == 0 && !one_product;
    const int64_t at_once = norms ? std::min(rows, DeviceHead::kFallbackRows) : rows;
    const int64_t elsewhere = fallback_->workspace_bytes(problem, at_once, cols, one_product) +
                              DeviceHead::host_query_bytes(problem, at_once);
    // Only reductions, which want the rows of all keys, need memory of the caller's.
    const bool reduces = one_product && cols == problem.num_keys();
    return std::max(elsewhere, reduces ? ReducePlan::host_bytes(problem, rows) : 0);
  }

  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const override {
    return fallback_->outputs_workspace_bytes(problem, rows) +
           DeviceHead::host_query_bytes(problem, rows);
  }

  const DeviceFacet* device() const override { return this; }

  const TexelPooler* pooler(const BoundHead& head) const override {
    // A head that the host computes is no pooler.
    return dynamic_cast<const TexelPooler*>(&head);
  }

  int64_t norm_panel_rows(const AttentionProblem& problem) const override {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const auto& share : shares_) {
      least =
          std::min(least, DeviceHead::norm_rows(problem, DeviceHead::kernels_for(problem, *share)));
    }
    return least;
  }

  std::vector<LaunchProfile> launch_profile() const override {
    std::vector<LaunchProfile> all;
    for (const auto& share : shares_) {
      for (LaunchProfile& profile : share->totals.profiles()) all.push_back(std::move(profile));
    }
    return all;
  }

  /// Every device computes small maps of 16-bit tensors, whose entries are known. One whose wgmma
  /// kernels fail that is given the others; one that fails without them is left out. Everything
  /// else is checked when it is first used. Throws Error(unavailable) or OutOfDeviceMemory where no
  /// device is left.
  void check_devices() {
    std::vector<std::unique_ptr<DeviceShare>> all = std::move(shares_);
    shares_.clear();
    for (auto& share : all) {
      try_device(share->device.index(), [&] {
        shares_.push_back(std::move(share));
        try {
          check_device(*shares_.back());
        } catch (...) {
          shares_.pop_back();
          throw;
        }
      });
    }
    require_some();
    keep_those_alike();
  }

  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    if (checked_ != nullptr) {
      const DeviceHead::Place place{checked_->share, checked_->kernels, *fallback_,
                                    checked_->notice};
      return std::make_unique<DeviceHead>(problem, batch, head, place, DeviceHead::Trust());
    }
    if (is_for_the_host(problem)) {
      if (!told_of_host_.exchange(true)) {
        notice_("cuda: heads with capped logits are computed by the cpu");
      }
      return fallback_->bind(problem, batch, head);
    }
    if (tf32() && problem.q().dtype() != DType::f32 && !told_of_tf32_.exchange(true)) {
      notice_("cuda: --tf32 changes nothing for " + std::string(dtype_name(problem.q().dtype())) +
              " tensors");
    }
    const DType dtype = DeviceHead::type_for(problem);
    // Heads go to the devices in turn.
    for (size_t tried = 0; tried < shares_.size(); ++tried) {
      DeviceShare& share = *shares_[next_++ % shares_.size()];
      const KernelSet& kernels = DeviceHead::kernels_for(problem, share);
      DeviceHead::Trust trust = [this, &share, &kernels, dtype](KnownWork work) {
        return is_right(share, kernels, dtype, work);
      };
      if (!trust(KnownWork::entries)) continue;
      const DeviceHead::Place place{share, kernels, *fallback_, notice_};
      return std::make_unique<DeviceHead>(problem, batch, head, place, std::move(trust));
    }
    return fallback_->bind(problem, batch, head);
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
  /// The kernels know no caps.
  static bool is_for_the_host(const AttentionProblem& problem) { return problem.score().cap != 0; }
  /// A device that cannot be used is left out: its neighbours can.
  void try_device(int index, const std::function<void()>& use) {
    const auto leave_out = [&](const char* why) {
      if (!left_out_) left_out_ = std::current_exception();
      left_out_lines_.push_back("cuda: device " + std::to_string(index) + " is left out: " + why);
    };
    try {
      use();
    } catch (const OutOfDeviceMemory& error) {
      leave_out(error.what());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable && error.code() != ErrorCode::resource) throw;
      leave_out(error.what());
    }
  }
  /// Tells of the devices that were left out; where none remains, the first one's failure is
  /// thrown.
  void require_some() {
    if (shares_.empty()) std::rethrow_exception(left_out_);
    for (const std::string& line : left_out_lines_) notice_(line);
    left_out_lines_.clear();
  }

  /// Of devices that are left to choose; nobody chooses what is slower unawares.
  void tell_of_missing_kernels(DeviceKernels kernels) {
    if (kernels != DeviceKernels::automatic) return;
    for (const auto& share : shares_) {
      const std::string line =
          missing_kernels(share->device.name(), share->device.capability(),
                          wgmma_f16_kernels() != nullptr, mma_f16_kernels() != nullptr);
      if (!line.empty()) notice_(line);
    }
  }

  /// The device and the kernels that a thread is checking: the heads that it binds are computed
  /// there, whatever the verdicts say.
  struct Checked {
    DeviceShare& share;
    const KernelSet& kernels;
    const DeviceHead::Notice& notice;  ///< of memory that is short
  };
  /// Throws Unusable where the answers are wrong.
  void check(DeviceShare& share, const KernelSet& kernels, DType dtype, KnownWork work,
             const DeviceHead::Notice& notice) const {
    const Checked checked{share, kernels, notice};
    struct Mark {
      explicit Mark(const Checked& now) { checked_ = &now; }
      ~Mark() { checked_ = nullptr; }
    } const mark(checked);
    const LaunchTotals::Muted muted;
    check_known_answers(*this, *fallback_, dtype, work, share.tf32);
  }
  /// check() once for all; false, with a notice, where the answers are wrong or cuBLAS is missing.
  bool is_right(DeviceShare& share, const KernelSet& kernels, DType dtype, KnownWork work) const {
    return share.verdicts.of(kernels, dtype, work, [&] {
      try {
        // Where memory is short for these maps, it is told of the user's.
        static const DeviceHead::Notice silence;
        check(share, kernels, dtype, work, silence);
      } catch (const Unusable& error) {
        notice_("cuda: " + share.device.name() + " is not used for " + known_work_name(work) +
                " of " + std::string(dtype_name(dtype)) + " tensors: " + error.what());
        return false;
      }
      return true;
    });
  }
  /// Entries of the tensors of 16 bits, by which a device is named.
  void check_entries(DeviceShare& share) const {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      const KernelSet& kernels = DeviceHead::kernels_for_type(dtype, share);
      share.verdicts.of(kernels, dtype, KnownWork::entries, [&] {
        check(share, kernels, dtype, KnownWork::entries, notice_);
        return true;
      });
    }
  }
  void check_device(DeviceShare& share) const {
    try {
      check_entries(share);
    } catch (const Error& error) {
      const bool chosen = share.kernels == DeviceKernels::wgmma;
      if (chosen || !share.wgmma || !runs(wgmma_f16_kernels(), share.device)) throw;
      notice_(std::string("cuda: wgmma is not used: ") + error.what());
      share.wgmma = false;
      try {
        check_entries(share);
      } catch (const Error&) {
        // A kernel that fails takes the device with it.
        throw Error(error.code(),
                    std::string(error.what()) + " (--backend cuda-mma does without wgmma)");
      }
    }
  }

  bool tf32() const {
    return std::any_of(shares_.begin(), shares_.end(), [](const auto& s) { return s->tf32; });
  }
  /// Of the kernels that tensors of 16 bits take, on all devices alike.
  std::string kernels_name() const {
    return name_of(DeviceHead::kernels_for_type(DType::f16, *shares_.front()));
  }
  static std::string name_of(const KernelSet& kernels) {
    return std::string("cuda-") + kernels.name;
  }
  /// A result's bits follow from the kernels, by whose name it is known: of devices that would take
  /// different ones those with the best stay.
  void keep_those_alike() {
    const auto rank_of = [](const auto& share) {
      const KernelSet* const kernels = &DeviceHead::kernels_for_type(DType::f16, *share);
      return kernels == wgmma_f16_kernels() ? 2 : kernels == mma_f16_kernels() ? 1 : 0;
    };
    const auto best = std::max_element(shares_.begin(), shares_.end(),
                                       [&](auto& a, auto& b) { return rank_of(a) < rank_of(b); });
    const int most = rank_of(*best);
    const std::string names = name_of(DeviceHead::kernels_for_type(DType::f16, **best));
    std::erase_if(shares_, [&](const auto& share) {
      if (rank_of(share) == most) return false;
      const std::string own = name_of(DeviceHead::kernels_for_type(DType::f16, *share));
      notice_("cuda: device " + std::to_string(share->device.index()) + " (" +
              share->device.name() + ") is left out: it computes by " + own + ", others by " +
              names + ", whose bits differ (--backend " + own + " takes all of them)");
      return true;
    });
  }

  const std::shared_ptr<const TileBackend> fallback_;
  const int lanes_;
  std::mutex notice_mutex_;
  const DeviceHead::Notice notice_;
  std::vector<std::unique_ptr<DeviceShare>> shares_;
  mutable std::atomic<size_t> next_{0};
  static inline thread_local const Checked* checked_ = nullptr;
  std::exception_ptr left_out_;  ///< why the first device that cannot be used was left out
  std::vector<std::string> left_out_lines_;  ///< to be told
  mutable std::atomic<bool> told_of_tf32_{false};
  mutable std::atomic<bool> told_of_host_{false};
};

}  // namespace
}  // namespace cuda

std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions& options) {
  const cuda::KeptDevice kept;
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
