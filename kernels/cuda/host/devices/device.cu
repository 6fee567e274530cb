#include "kernels/cuda/host/devices/device.h"

#include <algorithm>

#include "core/base/error.h"

namespace attnscope::cuda {
namespace {

constexpr double kDefaultShare = 0.9;  ///< of the free memory

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  if (status == cudaErrorMemoryAllocation) {
    // Not sticky: the call that failed has left nothing behind.
    cudaGetLastError();
    throw OutOfDeviceMemory();
  }
  throw Error(ErrorCode::unavailable, std::string("cuda: ") + what + ": " +
                                          cudaGetErrorString(status) + " (" +
                                          cudaGetErrorName(status) + ")");
}

KeptDevice::KeptDevice() {
  if (cudaGetDevice(&device_) == cudaSuccess) return;
  device_ = -1;
  cudaGetLastError();
}

KeptDevice::~KeptDevice() {
  int now = device_;
  // After an error that sticks this fails; whoever comes next is told.
  if (device_ < 0 || (cudaGetDevice(&now) == cudaSuccess && now == device_)) return;
  cudaSetDevice(device_);
}

Device::Device(int index, int64_t limit_bytes, double share) : index_(index) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index), "the device's properties");
  name_ = properties.name;
  capability_ = 10 * properties.major + properties.minor;
  multiprocessors_ = properties.multiProcessorCount;
  multiprocessor_threads_ = properties.maxThreadsPerMultiProcessor;
  block_shared_bytes_ = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  make_current();
  size_t free = 0;
  size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "the device's free memory");
  if (share <= 0) share = kDefaultShare;
  limit_bytes_ = limit_bytes > 0 ? std::min(limit_bytes, static_cast<int64_t>(free))
                                 : static_cast<int64_t>(static_cast<double>(free) * share);
  if (limit_bytes_ == 0) {
    throw Error(ErrorCode::resource, "backend cuda: no memory is free on device " +
                                         std::to_string(index) + " (" + name_ + ")");
  }
}

void Device::make_current() const { check(cudaSetDevice(index_), "choosing the device"); }

bool Device::reaches(int device) {
  const std::lock_guard lock(peers_mutex_);
  const auto [entry, is_new] = peers_.try_emplace(device, false);
  if (!is_new) return entry->second;
  make_current();
  int can = 0;
  cudaError_t status = cudaDeviceCanAccessPeer(&can, index_, device);
  if (status == cudaSuccess && can == 0) return false;
  if (status == cudaSuccess) status = cudaDeviceEnablePeerAccess(device, 0);
  // Others in this process may have opened it. An error that sticks is met again soon.
  if (status != cudaSuccess) cudaGetLastError();
  entry->second = status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
  return entry->second;
}

void* Device::allocate(int64_t bytes) {
  void* memory = try_allocate(bytes);
  for (const auto& reclaim : reclaims_) {
    if (memory == nullptr && reclaim()) memory = try_allocate(bytes);
  }
  if (memory == nullptr) throw OutOfDeviceMemory();
  return memory;
}

void* Device::try_allocate(int64_t bytes) {
  make_current();
  if (used_bytes_.fetch_add(bytes) + bytes > limit_bytes_) {
    used_bytes_ -= bytes;
    return nullptr;
  }
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaSuccess) return memory;
  used_bytes_ -= bytes;
  if (status != cudaErrorMemoryAllocation) check(status, "device memory");
  // Not sticky: the call that failed has left nothing behind.
  cudaGetLastError();
  return nullptr;
}

void Device::release(void* memory, int64_t bytes) noexcept {
  // cudaFree waits for what uses the memory. After an error that sticks both fail.
  cudaSetDevice(index_);
  cudaFree(memory);
  used_bytes_ -= bytes;
}

void DeviceBuffer::grow(int64_t bytes) {
  if (bytes <= bytes_) return;
  clear();
  memory_ = device_->allocate(bytes);
  bytes_ = bytes;
}

void DeviceBuffer::clear() noexcept {
  if (memory_ != nullptr) device_->release(memory_, bytes_);
  memory_ = nullptr;
  bytes_ = 0;
}

PinnedMemory::PinnedMemory(int64_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  const cudaError_t status =
      cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocDefault);
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw Error(ErrorCode::resource,
                "cuda: " + std::to_string(bytes) +
                    " bytes of page-locked memory: " + cudaGetErrorString(status));
  }
  memory_ = static_cast<std::byte*>(memory);
}

PinnedMemory::~PinnedMemory() { cudaFreeHost(memory_); }

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }

Stream::~Stream() { cudaStreamDestroy(stream_); }

Event::Event(Kind kind) {
  const unsigned flags = kind == Kind::timed ? cudaEventDefault : cudaEventDisableTiming;
  check(cudaEventCreateWithFlags(&event_, flags), "an event");
}

float Event::milliseconds_since(const Event& start) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "the time between events");
  return milliseconds;
}

Event::~Event() { cudaEventDestroy(event_); }

}  // namespace attnscope::cuda
