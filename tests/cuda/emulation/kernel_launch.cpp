#include <algorithm>
#include <map>
#include <utility>

#include "tests/cuda/emulation/block_runner.h"
#include "tests/cuda/emulation/kernel_names.h"
#include "tests/cuda/emulation/runtime_state.h"
#include "tests/cuda/emulation/streams.h"

namespace attnscope::cuda::emulation {
namespace {

constexpr std::size_t kSharedWithoutOptin = 48 << 10;
constexpr std::size_t kReservedShared = 1 << 10;  // of each block, for the driver
constexpr std::size_t kMaxThreads = 1024;
constexpr std::size_t kMaxResidentThreads = 2048;
constexpr std::size_t kMaxResidentBlocks = 32;
constexpr std::size_t kRegisters = 65536;
// Those of an emulated kernel are not known; this is what lets any block be launched.
constexpr std::size_t kRegistersOfThread = 64;

struct SharedLimits {
  std::mutex mutex;
  std::map<const void*, std::size_t> by_kernel;
};

SharedLimits& shared_limits() {
  static SharedLimits the_limits;
  return the_limits;
}

std::size_t shared_limit_of(const void* kernel) {
  const std::lock_guard lock(shared_limits().mutex);
  const auto found = shared_limits().by_kernel.find(kernel);
  return found == shared_limits().by_kernel.end() ? kSharedWithoutOptin : found->second;
}

cudaError_t check_shape(const cudaLaunchConfig_t& config) {
  const dim3& grid = config.gridDim;
  const dim3& block = config.blockDim;
  constexpr unsigned kMaxGrid = 65535;
  const bool empty =
      grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0;
  const bool large = grid.x > 0x7fffffff || grid.y > kMaxGrid || grid.z > kMaxGrid ||
                     block.x > kMaxThreads || block.y > kMaxThreads || block.z > 64 ||
                     std::size_t{block.x} * block.y * block.z > kMaxThreads;
  return empty || large ? cudaErrorInvalidConfiguration : cudaSuccess;
}

cudaError_t find_device(Device& device) {
  const std::vector<Device> all = devices();
  if (all.empty()) {
    return record(cudaErrorNoDevice);
  }
  device = all[static_cast<std::size_t>(current_device())];
  return cudaSuccess;
}

}  // namespace

void reset_kernels() {
  const std::lock_guard lock(shared_limits().mutex);
  shared_limits().by_kernel.clear();
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel,
                   std::function<void()> body) {
  const CallOutcome call = begin_call(Call::kLaunch);
  if (call.now != cudaSuccess) {
    return call.now;
  }
  Device device;
  if (const cudaError_t error = find_device(device); error != cudaSuccess) {
    return error;
  }
  if (config.numAttrs != 0) {
    fail_program("kernel " + kernel_name(kernel) + ": attributes of launches are not emulated");
  }
  const StreamPointer stream = find_stream(config.stream);
  if (stream == nullptr || stream->device != current_device()) {
    return record(cudaErrorInvalidResourceHandle);
  }
  if (const cudaError_t error = check_shape(config); error != cudaSuccess) {
    return record(error);
  }
  if (config.dynamicSmemBytes > std::min(shared_limit_of(kernel), device.shared_per_block_optin)) {
    return record(cudaErrorInvalidValue);
  }
  count_launch(kernel);
  enqueue(stream, {[=, body = std::move(body)] {
                     BlockRunner::of_thread().run(
                         {kernel, config.gridDim, config.blockDim, config.dynamicSmemBytes, &body});
                   },
                   call.when_run});
  return cudaSuccess;
}

}  // namespace attnscope::cuda::emulation

using namespace attnscope::cuda::emulation;

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  if (const CallOutcome call = begin_call(Call::kFunction); call.now != cudaSuccess) {
    return call.now;
  }
  Device device;
  if (const cudaError_t error = find_device(device); error != cudaSuccess) {
    return error;
  }
  if (func == nullptr) {
    return record(cudaErrorInvalidDeviceFunction);
  }
  if (attr == cudaFuncAttributePreferredSharedMemoryCarveout) {
    return record(value < -1 || value > 100 ? cudaErrorInvalidValue : cudaSuccess);
  }
  if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > device.shared_per_block_optin) {
    return record(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(shared_limits().mutex);
  shared_limits().by_kernel[func] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, const void* func) {
  if (const CallOutcome call = begin_call(Call::kFunction); call.now != cudaSuccess) {
    return call.now;
  }
  Device device;
  if (const cudaError_t error = find_device(device); error != cudaSuccess) {
    return error;
  }
  if (func == nullptr) {
    return record(cudaErrorInvalidDeviceFunction);
  }
  *attr = {};
  attr->maxThreadsPerBlock = static_cast<int>(kMaxThreads);
  attr->numRegs = static_cast<int>(kRegistersOfThread);
  attr->ptxVersion = attr->binaryVersion = device.major * 10 + device.minor;
  attr->maxDynamicSharedSizeBytes = static_cast<int>(shared_limit_of(func));
  attr->preferredShmemCarveout = -1;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* func,
                                                          int blockSize, size_t dynamicSMemSize) {
  if (const CallOutcome call = begin_call(Call::kFunction); call.now != cudaSuccess) {
    return call.now;
  }
  Device device;
  if (const cudaError_t error = find_device(device); error != cudaSuccess) {
    return error;
  }
  if (func == nullptr || blockSize <= 0) {
    return record(cudaErrorInvalidValue);
  }
  const auto threads = (static_cast<std::size_t>(blockSize) + 31) / 32 * 32;
  *numBlocks = 0;
  if (threads <= kMaxThreads && dynamicSMemSize <= shared_limit_of(func)) {
    *numBlocks = static_cast<int>(
        std::min({kMaxResidentBlocks, kMaxResidentThreads / threads,
                  kRegisters / (kRegistersOfThread * threads),
                  device.shared_per_multiprocessor / (dynamicSMemSize + kReservedShared)}));
  }
  return cudaSuccess;
}
