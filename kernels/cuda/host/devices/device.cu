#include "kernels/cuda/host/devices/device.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace attnscope::cuda {
namespace {

constexpr double kDefaultShare = 0.9;  ///< of the free memory

/// A few bytes of a device's memory.
class Sample {
 public:
  Sample(int device, size_t bytes) : device_(device) {
    check(cudaSetDevice(device_), "choosing the device");
    check(cudaMalloc(&memory_, bytes), "device memory");
  }
  ~Sample() {
    cudaSetDevice(device_);
    cudaFree(memory_);
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  void* memory() const { return memory_; }

 private:
  const int device_;
  void* memory_ = nullptr;
};

/// True where rows that are copied from one device to another arrive as they were: some IOMMUs and
/// virtual machines corrupt them without an error. Another device may be current when it
/// returns.
bool comes_rightly(int to, int from) {
  constexpr size_t kRows = 32, kPitch = 256, kWidth = 192;
  std::vector<unsigned char> sent(kRows * kPitch), got(kRows * kWidth);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 37 >> 3);
  const Sample source(from, sent.size());
  check(cudaMemcpy(source.memory(), sent.data(), sent.size(), cudaMemcpyHostToDevice),
        "copying to the device");
  // It returns as soon as the host's bytes are staged.
  check(cudaStreamSynchronize(nullptr), "waiting for the device");
  const Sample target(to, got.size());
  const Stream stream;
  // Another run may have left the same bytes there.
  check(cudaMemsetAsync(target.memory(), 0, got.size(), stream), "clearing device memory");
  check(cudaMemcpy2DAsync(target.memory(), kWidth, source.memory(), kPitch, kWidth, kRows,
                          cudaMemcpyDefault, stream),
        "copying from another device");
  stream.finish();
  check(cudaMemcpy(got.data(), target.memory(), got.size(), cudaMemcpyDeviceToHost),
        "copying from the device");
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != sent[i / kWidth * kPitch + i % kWidth]) return false;
  }
  return true;
}

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

Device::Peer Device::peer(int device) {
  const std::lock_guard lock(peers_mutex_);
  const auto found = peers_.find(device);
  if (found != peers_.end()) return found->second;
  return peers_[device] = find_peer(device);
}

Device::Peer Device::find_peer(int device) const {
  make_current();
  int can = 0;
  cudaError_t status = cudaDeviceCanAccessPeer(&can, index_, device);
  if (status == cudaSuccess && can == 0) return Peer::apart;
  if (status == cudaSuccess) status = cudaDeviceEnablePeerAccess(device, 0);
  // Others in this process may have opened it. An error that sticks is met again soon.
  if (status != cudaSuccess) cudaGetLastError();
  if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled) return Peer::apart;
  Peer peer = Peer::apart;
  try {
    peer = comes_rightly(index_, device) ? Peer::open : Peer::wrong;
  } catch (const OutOfDeviceMemory&) {
    // Who has no room for this has none for more.
  }
  make_current();
  return peer;
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
