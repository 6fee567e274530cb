#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda_runtime_api.h"

struct CUstream_st;

namespace attnscope::cuda::emulation {

using StreamPointer = std::shared_ptr<CUstream_st>;

/// The first `position` operations of a stream.
struct Progress {
  StreamPointer stream;
  std::uint64_t position = 0;
};

struct Operation {
  std::function<void()> run;
  /// Instead of running, breaks the context with this error.
  cudaError_t fails = cudaSuccess;
  std::vector<Progress> after = {};
};

/// The stream behind the handle, of the calling thread's device if null; null if there is none
/// such.
StreamPointer find_stream(cudaStream_t handle);

/// Queues the operation behind those of the stream, and where one of the two is the default stream
/// behind those of the device's other streams, unless they were created as non-blocking. Returns
/// what to wait for.
Progress enqueue(const StreamPointer& stream, Operation operation);

/// Runs, on the calling thread, what has to have run. Returns the sticky error, recorded.
cudaError_t run_until(const Progress& progress);
/// Everything that is queued on the device.
cudaError_t run_all(int device);

}  // namespace attnscope::cuda::emulation

/// Thread-safe: any thread may queue, and run what is queued.
struct CUstream_st {
  int device = 0;
  bool is_default = false;
  bool blocking = true;

  std::mutex execution;  // held while an operation runs
  std::mutex mutex;      // of the two below
  std::deque<attnscope::cuda::emulation::Operation> queue;
  std::uint64_t queued = 0;
  std::atomic<std::uint64_t> done = 0;
};

struct CUevent_st {
  using Clock = std::chrono::steady_clock;

  int device = 0;
  bool timed = true;
  std::mutex mutex;  // of the two below
  attnscope::cuda::emulation::Progress recorded;
  std::shared_ptr<Clock::time_point> when;
};
