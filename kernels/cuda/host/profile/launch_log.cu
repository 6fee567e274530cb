#include "kernels/cuda/host/profile/launch_log.h"

#include <algorithm>

namespace attnscope::cuda {
namespace {

/// Launches that may wait to be added up: a bound on the events that a long call holds.
constexpr size_t kMostPending = 2048;
constexpr int kWarpThreads = 32;

}  // namespace

LaunchProfile LaunchTotals::describe(const LaunchWork& work, const KernelLaunch& launch) const {
  LaunchProfile profile;
  profile.device = std::to_string(device_.index()) + " " + device_.name();
  profile.kernel = work.kernel;
  profile.product = work.product;
  profile.splits = work.splits;
  profile.multiprocessors = device_.multiprocessors();
  if (launch.kernel == nullptr) return profile;
  const LaunchShape& shape = launch.shape;
  profile.grid = {shape.grid.x, shape.grid.y, shape.grid.z};
  profile.threads = shape.threads;
  profile.shared_bytes = shape.shared_bytes;
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, launch.kernel), "a kernel's attributes");
  profile.registers = attributes.numRegs;
  profile.shared_bytes += static_cast<int64_t>(attributes.sharedSizeBytes);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&profile.resident_blocks, launch.kernel,
                                                      shape.threads,
                                                      static_cast<size_t>(shape.shared_bytes)),
        "a kernel's occupancy");
  const int block_warps = (shape.threads + kWarpThreads - 1) / kWarpThreads;
  profile.occupancy = static_cast<double>(profile.resident_blocks) * block_warps * kWarpThreads /
                      device_.multiprocessor_threads();
  return profile;
}

void LaunchTotals::add(const LaunchWork& work, const KernelLaunch& launch, double seconds) {
  if (muted_) return;
  const dim3 grid = launch.shape.grid;
  const Key key(work.kernel, work.product, launch.kernel, grid.x, grid.y, grid.z,
                launch.shape.threads, launch.shape.shared_bytes, work.splits);
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end()) found = entries_.emplace(key, describe(work, launch)).first;
  LaunchProfile& profile = found->second;
  ++profile.launches;
  profile.seconds += seconds;
  profile.flops += work.flops;
  profile.bytes += work.bytes;
}

std::vector<LaunchProfile> LaunchTotals::profiles() const {
  std::vector<LaunchProfile> profiles;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, profile] : entries_) profiles.push_back(profile);
  }
  std::stable_sort(profiles.begin(), profiles.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return profiles;
}

LaunchLog::Pending& LaunchLog::begin() {
  if (used_ == kMostPending) {
    pending_[used_ - 1]->stop.wait();
    collect();
  }
  if (used_ == pending_.size()) pending_.push_back(std::make_unique<Pending>());
  Pending& entry = *pending_[used_];
  entry.launch = {};
  entry.start.record(stream_);
  return entry;
}

void LaunchLog::end(Pending& entry) {
  entry.stop.record(stream_);
  ++used_;
}

void LaunchLog::collect() {
  for (size_t i = 0; i < used_; ++i) {
    const Pending& entry = *pending_[i];
    totals_->add(entry.work, entry.launch, entry.stop.milliseconds_since(entry.start) * 1e-3);
  }
  used_ = 0;
}

}  // namespace attnscope::cuda
