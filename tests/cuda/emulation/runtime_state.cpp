#include "tests/cuda/emulation/runtime_state.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "tests/cuda/emulation/graphics.h"
#include "tests/cuda/emulation/kernel_names.h"

namespace attnscope::cuda::emulation {
namespace {

struct Fault {
  int calls_left;
  cudaError_t error;
  Failure failure;
};

struct State {
  std::mutex mutex;
  std::vector<Device> devices{Device{}};
  cudaError_t device_count_error = cudaSuccess;
  std::array<std::vector<Fault>, static_cast<std::size_t>(Call::kNumCalls)> faults;
  std::size_t memory_limit = std::numeric_limits<std::size_t>::max();
  int malloc_period = 0;
  int mallocs = 0;
  int gemms_until_fault = 0;
  int gemm_fault = 0;
  bool pageable_copies = false;
  bool apart = false;
  std::set<std::pair<int, int>> peers;  ///< from whom to whose memory
  Counters counters;
  std::map<const void*, std::uint64_t> launches;
  std::atomic<cudaError_t> sticky = cudaSuccess;
  std::atomic<unsigned> generation = 0;
};

State& state() {
  static State the_state;
  return the_state;
}

// reset() forgets what every thread has here.
struct ThreadState {
  unsigned generation = 0;
  cudaError_t last_error = cudaSuccess;
  int device = 0;
};

ThreadState& thread_state() {
  thread_local ThreadState mine;
  if (const unsigned now = state().generation; mine.generation != now) {
    mine = {now, cudaSuccess, 0};
  }
  return mine;
}

}  // namespace

CallOutcome begin_call(Call call) {
  State& all = state();
  if (const cudaError_t sticky = begin_call(); sticky != cudaSuccess) {
    return {sticky, sticky};
  }
  CallOutcome outcome;
  {
    const std::lock_guard lock(all.mutex);
    for (Fault& fault : all.faults[static_cast<std::size_t>(call)]) {
      if (--fault.calls_left != 0) {
        continue;
      }
      const bool queues = call == Call::kLaunch || call == Call::kCopy;
      if (fault.failure == Failure::kWhenRun && queues) {
        outcome.when_run = fault.error;
        continue;
      }
      outcome.now = fault.error;
      if (fault.failure != Failure::kOnce) {
        all.sticky = fault.error;
      }
    }
  }
  record(outcome.now);
  return outcome;
}

cudaError_t begin_call() { return record(state().sticky); }

cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess) {
    thread_state().last_error = error;
  }
  return error;
}

void set_sticky_error(cudaError_t error) { state().sticky = error; }

cudaError_t sticky_error() { return state().sticky; }

void fail_program(const std::string& what) {
  std::fprintf(stderr, "cuda emulation: %s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

int current_device() { return thread_state().device; }

std::vector<Device> devices() {
  const std::lock_guard lock(state().mutex);
  return state().devices;
}

void count(const std::function<void(Counters&)>& change) {
  const std::lock_guard lock(state().mutex);
  Counters& counters = state().counters;
  change(counters);
  counters.peak_device_bytes = std::max(counters.peak_device_bytes, counters.device_bytes);
}

void count_launch(const void* kernel) {
  const std::lock_guard lock(state().mutex);
  ++state().counters.launches;
  ++state().launches[kernel];
}

int begin_gemm() {
  const std::lock_guard lock(state().mutex);
  ++state().counters.gemms;
  if (state().gemms_until_fault == 0 || --state().gemms_until_fault != 0) {
    return 0;
  }
  return state().gemm_fault;
}

AllocationRules begin_malloc() {
  const std::lock_guard lock(state().mutex);
  State& all = state();
  ++all.mallocs;
  return {all.memory_limit, all.malloc_period != 0 && all.mallocs % all.malloc_period == 0};
}

bool pageable_copies_allowed() {
  const std::lock_guard lock(state().mutex);
  return state().pageable_copies;
}

void reset() {
  reset_streams();
  reset_graphics();
  reset_memory();
  reset_kernels();
  spoil_warpgroups(false);
  spoil_gemms(false);
  spoil_sums(false);
  spoil_peer_copies(false);
  order_gemms_by_shape(false);
  hide_cublas(false);
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.devices = {Device{}};
  all.device_count_error = cudaSuccess;
  for (auto& faults : all.faults) {
    faults.clear();
  }
  all.memory_limit = std::numeric_limits<std::size_t>::max();
  all.malloc_period = all.mallocs = 0;
  all.gemms_until_fault = all.gemm_fault = 0;
  all.pageable_copies = all.apart = false;
  all.peers.clear();
  all.counters = {};
  all.launches.clear();
  all.sticky = cudaSuccess;
  ++all.generation;
}

void set_devices(std::vector<Device> devices) {
  const std::lock_guard lock(state().mutex);
  state().devices = std::move(devices);
}

void fail_device_count(cudaError_t error) {
  const std::lock_guard lock(state().mutex);
  state().device_count_error = error;
}

void fail(Call call, int nth, cudaError_t error, Failure failure) {
  const std::lock_guard lock(state().mutex);
  state().faults[static_cast<std::size_t>(call)].push_back({nth, error, failure});
}

void fail_gemm(int nth, int status) {
  const std::lock_guard lock(state().mutex);
  state().gemms_until_fault = nth;
  state().gemm_fault = status;
}

void limit_device_memory(std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  state().memory_limit = bytes;
}

void fail_every_malloc(int k) {
  const std::lock_guard lock(state().mutex);
  state().malloc_period = k;
  state().mallocs = 0;
}

void allow_pageable_copies(bool allow) {
  const std::lock_guard lock(state().mutex);
  state().pageable_copies = allow;
}

void part_devices(bool apart) {
  const std::lock_guard lock(state().mutex);
  state().apart = apart;
}

bool are_devices_apart() {
  const std::lock_guard lock(state().mutex);
  return state().apart;
}

bool open_peer(int device, int peer) {
  const std::lock_guard lock(state().mutex);
  return state().peers.emplace(device, peer).second;
}

Counters counters() {
  const std::lock_guard lock(state().mutex);
  return state().counters;
}

std::uint64_t launches_of(const void* kernel) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().launches.find(kernel);
  return found == state().launches.end() ? 0 : found->second;
}

std::uint64_t launches_of(std::string_view name) {
  const std::lock_guard lock(state().mutex);
  std::uint64_t sum = 0;
  for (const auto& [kernel, launches] : state().launches) {
    if (kernel_name(kernel).find(name) != std::string::npos) {
      sum += launches;
    }
  }
  return sum;
}

}  // namespace attnscope::cuda::emulation

using namespace attnscope::cuda::emulation;

cudaError_t cudaGetLastError() {
  ThreadState& mine = thread_state();
  const cudaError_t error = mine.last_error;
  mine.last_error = sticky_error();
  return error;
}

cudaError_t cudaPeekAtLastError() { return thread_state().last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t error = begin_call(); error != cudaSuccess) {
    return error;
  }
  const std::lock_guard lock(state().mutex);
  if (state().device_count_error != cudaSuccess) {
    return record(state().device_count_error);
  }
  *count = static_cast<int>(state().devices.size());
  return record(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (const CallOutcome call = begin_call(Call::kDevice); call.now != cudaSuccess) {
    return call.now;
  }
  const std::size_t num_devices = devices().size();
  if (num_devices == 0) {
    return record(cudaErrorNoDevice);
  }
  if (device < 0 || static_cast<std::size_t>(device) >= num_devices) {
    return record(cudaErrorInvalidDevice);
  }
  thread_state().device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = begin_call(); error != cudaSuccess) {
    return error;
  }
  *device = current_device();
  return record(devices().empty() ? cudaErrorNoDevice : cudaSuccess);
}
