#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "tests/cuda/emulation/control.h"

namespace attnscope::cuda::emulation {

/// The errors that a call meets: one that it returns now, and one with which the operation that it
/// queues fails when it runs.
struct CallOutcome {
  cudaError_t now = cudaSuccess;
  cudaError_t when_run = cudaSuccess;
};

/// Counts the call and looks up what makes it fail: an earlier sticky error, or a fault of the
/// test. An error is already recorded.
CallOutcome begin_call(Call call);
/// For calls that cannot be made to fail: the sticky error, if there is one.
cudaError_t begin_call();

/// Makes the error the calling thread's last one, if it is one; returns it.
cudaError_t record(cudaError_t error);

/// Every later call returns the error, as after a kernel that broke the device's context.
void set_sticky_error(cudaError_t error);
cudaError_t sticky_error();

/// Ends the program with a message, where a device's behaviour would be undefined.
[[noreturn]] void fail_program(const std::string& what);

/// The calling thread's device; none when the machine has none.
int current_device();
std::vector<Device> devices();

/// Changes counters as one step.
void count(const std::function<void(Counters&)>& change);
void count_launch(const void* kernel);

/// Counts a product of cuBLAS; returns the status with which it fails, or 0.
int begin_gemm();

/// The tests' rules for an allocation: the most live bytes, and true where this one fails.
struct AllocationRules {
  std::size_t limit;
  bool this_one_fails;
};
AllocationRules begin_malloc();
bool pageable_copies_allowed();

/// Opens the peer's memory to a device; false: it was open.
bool open_peer(int device, int peer);

// reset() calls these.
void reset_memory();
void reset_streams();
void reset_kernels();

}  // namespace attnscope::cuda::emulation
