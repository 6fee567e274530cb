#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace attnscope::cuda {

/// Device memory within the limit does not suffice. Caught within the backend, which then takes
/// smaller steps.
class OutOfDeviceMemory : public std::exception {
 public:
  const char* what() const noexcept override { return "out of device memory"; }
};

/// Throws OutOfDeviceMemory, or Error(unavailable) "cuda: WHAT: …", unless the call succeeded.
void check(cudaError_t status, const char* what);

/// The calling thread's device is the same again when this ends: a library that others use devices
/// beside must not change theirs.
class KeptDevice {
 public:
  KeptDevice();
  ~KeptDevice();
  KeptDevice(const KeptDevice&) = delete;
  KeptDevice& operator=(const KeptDevice&) = delete;

 private:
  int device_ = -1;  ///< none is known
};

/// A GPU and how much of its memory may be used. Thread-safe.
class Device {
 public:
  /// Up to `limit_bytes` may be used, or where that is 0 this share of what is free now (0: 90 %).
  /// Throws Error(unavailable), or Error(resource) where nothing is free.
  Device(int index, int64_t limit_bytes, double share);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }
  /// 10·major + minor of the compute capability.
  int capability() const { return capability_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Threads that a multiprocessor holds at most.
  int multiprocessor_threads() const { return multiprocessor_threads_; }
  /// The most shared memory a block may ask for.
  int64_t block_shared_bytes() const { return block_shared_bytes_; }
  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }

  /// Makes it the calling thread's device.
  void make_current() const;

  /// How copies from another device's memory come here: the direct way, which is opened and tried
  /// out when it is first asked for; not at all; or so that what comes is not what was there.
  enum class Peer { open, apart, wrong };
  Peer peer(int device);

  /// Adds a function that gives back memory that can be done without; it returns false where there
  /// is none. Where memory is short, any thread calls these functions in the order in which they
  /// were added. All are added before there are several threads.
  void add_reclaim(std::function<bool()> reclaim) { reclaims_.push_back(std::move(reclaim)); }

  /// Throws OutOfDeviceMemory beyond the limit or where the driver has none left, even after what
  /// can be done without was given back.
  void* allocate(int64_t bytes);
  /// Null where there is none left.
  void* try_allocate(int64_t bytes);
  void release(void* memory, int64_t bytes) noexcept;

 private:
  Peer find_peer(int device) const;

  const int index_;
  std::string name_;
  int capability_ = 0;
  int multiprocessors_ = 0;
  int multiprocessor_threads_ = 0;
  int64_t block_shared_bytes_ = 0;
  int64_t limit_bytes_ = 0;
  std::atomic<int64_t> used_bytes_{0};
  std::vector<std::function<bool()>> reclaims_;
  std::mutex peers_mutex_;
  std::map<int, Peer> peers_;  ///< what peer() has found
};

/// Device memory that grows on demand; its content is lost then. Not thread-safe.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(Device& device) : device_(&device) {}
  ~DeviceBuffer() { clear(); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  /// At least `count` elements of T. Nothing may be using the memory that was there.
  template <typename T>
  T* get(int64_t count) {
    grow(count * static_cast<int64_t>(sizeof(T)));
    return static_cast<T*>(memory_);
  }
  void clear() noexcept;
  void* data() const { return memory_; }
  int64_t bytes() const { return bytes_; }

 private:
  void grow(int64_t bytes);

  Device* device_;
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
};

/// Page-locked host memory of fixed size.
class PinnedMemory {
 public:
  explicit PinnedMemory(int64_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return memory_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* memory_ = nullptr;
  const int64_t bytes_;
};

/// A queue of work on the device that is current when it is made.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return stream_; }
  /// Waits until everything queued is done; throws what went wrong in it.
  void finish() const { check(cudaStreamSynchronize(stream_), "waiting for the device"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Waits for a stream when it ends, also by an exception, whatever became of the work: what was
/// lent to it may be given back then.
class DrainedStream {
 public:
  /// Null: waits for nothing.
  explicit DrainedStream(cudaStream_t stream) : stream_(stream) {}
  ~DrainedStream() {
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  }
  DrainedStream(const DrainedStream&) = delete;
  DrainedStream& operator=(const DrainedStream&) = delete;

 private:
  const cudaStream_t stream_;
};

/// A place in a stream that can be waited for.
class Event {
 public:
  enum class Kind { plain, timed };
  explicit Event(Kind kind = Kind::plain);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  operator cudaEvent_t() const { return event_; }
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "an event"); }
  void wait() const { check(cudaEventSynchronize(event_), "waiting for the device"); }
  /// The time from one to the other; both are timed, and were waited for.
  float milliseconds_since(const Event& start) const;

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace attnscope::cuda
