#include <algorithm>
#include <cstring>

#include "tests/cuda/emulation/runtime_state.h"

using namespace attnscope::cuda::emulation;

namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxGrid = 65535;
constexpr int kRegisters = 65536;
constexpr int kSharedWithoutOptin = 48 << 10;
constexpr int kReservedShared = 1 << 10;
constexpr int kMaxResidentThreads = 2048;
constexpr int kMaxResidentBlocks = 32;

cudaError_t find_device(int index, Device& device) {
  if (const CallOutcome call = begin_call(Call::kDevice); call.now != cudaSuccess) {
    return call.now;
  }
  const std::vector<Device> all = devices();
  if (all.empty()) {
    return record(cudaErrorNoDevice);
  }
  if (index < 0 || static_cast<std::size_t>(index) >= all.size()) {
    return record(cudaErrorInvalidDevice);
  }
  device = all[static_cast<std::size_t>(index)];
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int index, int peerDevice) {
  Device device;
  for (const int asked : {index, peerDevice}) {
    if (const cudaError_t error = find_device(asked, device); error != cudaSuccess) {
      return error;
    }
  }
  *canAccessPeer = index != peerDevice && !are_devices_apart() ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  int can = 0;
  if (const cudaError_t error = cudaDeviceCanAccessPeer(&can, current_device(), peerDevice);
      error != cudaSuccess) {
    return error;
  }
  if (flags != 0 || peerDevice == current_device()) {
    return record(flags != 0 ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
  }
  if (can == 0) {
    return record(cudaErrorPeerAccessUnsupported);
  }
  return record(open_peer(current_device(), peerDevice) ? cudaSuccess
                                                        : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  *driverVersion = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  *runtimeVersion = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int index) {
  Device device;
  if (const cudaError_t error = find_device(index, device); error != cudaSuccess) {
    return error;
  }
  *prop = {};
  device.name.copy(prop->name, sizeof(prop->name) - 1);
  prop->totalGlobalMem = device.memory;
  prop->sharedMemPerBlock = kSharedWithoutOptin;
  prop->sharedMemPerBlockOptin = device.shared_per_block_optin;
  prop->sharedMemPerMultiprocessor = device.shared_per_multiprocessor;
  prop->reservedSharedMemPerBlock = kReservedShared;
  prop->regsPerBlock = prop->regsPerMultiprocessor = kRegisters;
  prop->warpSize = 32;
  prop->memPitch = 0x7fffffff;
  prop->maxThreadsPerBlock = kMaxThreads;
  prop->maxThreadsPerMultiProcessor = kMaxResidentThreads;
  prop->maxBlocksPerMultiProcessor = kMaxResidentBlocks;
  const int threads[3] = {kMaxThreads, kMaxThreads, 64};
  const int grid[3] = {0x7fffffff, kMaxGrid, kMaxGrid};
  std::copy(threads, threads + 3, prop->maxThreadsDim);
  std::copy(grid, grid + 3, prop->maxGridSize);
  prop->totalConstMem = 64 << 10;
  prop->major = device.major;
  prop->minor = device.minor;
  prop->multiProcessorCount = device.multiprocessors;
  prop->canMapHostMemory = prop->concurrentKernels = prop->unifiedAddressing = 1;
  prop->asyncEngineCount = 2;
  prop->memoryBusWidth = 5120;
  prop->l2CacheSize = static_cast<int>(device.l2_cache);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int index) {
  Device device;
  if (const cudaError_t error = find_device(index, device); error != cudaSuccess) {
    return error;
  }
  switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      *value = kMaxThreads;
      break;
    case cudaDevAttrMaxBlockDimZ:
      *value = 64;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 0x7fffffff;
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = kMaxGrid;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = kSharedWithoutOptin;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      *value = kRegisters;
      break;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      *value = 1'000'000;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = device.multiprocessors;
      break;
    case cudaDevAttrIntegrated:
      *value = 0;
      break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
      *value = 1;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 5120;
      break;
    case cudaDevAttrL2CacheSize:
      *value = static_cast<int>(device.l2_cache);
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = kMaxResidentThreads;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = device.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = device.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(device.shared_per_multiprocessor);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(device.shared_per_block_optin);
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = kMaxResidentBlocks;
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      *value = kReservedShared;
      break;
    default:
      return record(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
