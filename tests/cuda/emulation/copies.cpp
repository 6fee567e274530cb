#include <atomic>
#include <cstring>
#include <list>
#include <memory>

#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/guarded_memory.h"
#include "tests/cuda/emulation/streams.h"

namespace attnscope::cuda::emulation {
namespace {

std::atomic<bool> peer_copies_spoilt = false;

/// A copy of `height` rows of `width` bytes.
struct Copy {
  unsigned char* target;
  std::size_t target_pitch;
  const unsigned char* source;
  std::size_t source_pitch;
  std::size_t width, height;

  std::size_t target_bytes() const { return (height - 1) * target_pitch + width; }
  std::size_t source_bytes() const { return (height - 1) * source_pitch + width; }
  void run() const {
    for (std::size_t row = 0; row < height; ++row) {
      std::memmove(target + row * target_pitch, source + row * source_pitch, width);
    }
  }
};

/// Host memory that queued copies will read.
struct PendingReads {
  struct Range {
    const unsigned char* begin;
    const unsigned char* end;
  };
  std::mutex mutex;
  std::list<Range> ranges;
};

PendingReads& pending_reads() {
  static PendingReads the_reads;
  return the_reads;
}

/// Noted until the operation that holds the pointer has run or is dropped.
std::shared_ptr<void> note_read(const unsigned char* begin, std::size_t bytes) {
  PendingReads& reads = pending_reads();
  const std::lock_guard lock(reads.mutex);
  reads.ranges.push_back({begin, begin + bytes});
  return {nullptr, [entry = std::prev(reads.ranges.end())](void*) {
            const std::lock_guard release_lock(pending_reads().mutex);
            pending_reads().ranges.erase(entry);
          }};
}

bool is_to_be_read(const unsigned char* begin, std::size_t bytes) {
  PendingReads& reads = pending_reads();
  const std::lock_guard lock(reads.mutex);
  for (const PendingReads::Range& range : reads.ranges) {
    if (begin < range.end && range.begin < begin + bytes) {
      return true;
    }
  }
  return false;
}

bool kind_fits(cudaMemcpyKind kind, Space target, Space source) {
  const bool to_device = target == Space::kDevice;
  const bool from_device = source == Space::kDevice;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

void count_bytes(const Copy& copy, Space target, Space source) {
  const std::size_t bytes = copy.width * copy.height;
  const bool between = device_of(copy.target) != device_of(copy.source);
  count([&](Counters& counters) {
    if (target == Space::kDevice) {
      (source != Space::kDevice ? counters.bytes_to_device
       : between                ? counters.bytes_between_devices
                                : counters.bytes_within_device) += bytes;
    } else if (source == Space::kDevice) {
      counters.bytes_to_host += bytes;
    }
  });
}

cudaError_t start_copy(const Copy& copy, cudaMemcpyKind kind, cudaStream_t handle, bool wait) {
  const CallOutcome call = begin_call(Call::kCopy);
  if (call.now != cudaSuccess) {
    return call.now;
  }
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return record(cudaErrorInvalidMemcpyDirection);
  }
  const StreamPointer stream = find_stream(handle);
  if (stream == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  if (copy.width == 0 || copy.height == 0) {
    return cudaSuccess;
  }
  const std::optional<Space> target = space_of(copy.target, copy.target_bytes());
  const std::optional<Space> source = space_of(copy.source, copy.source_bytes());
  if (!target || !source || !kind_fits(kind, *target, *source)) {
    return record(cudaErrorInvalidValue);
  }
  if (!wait && (*target == Space::kPageable || *source == Space::kPageable)) {
    if (!pageable_copies_allowed()) {
      fail_program("an asynchronous copy of " + std::to_string(copy.width * copy.height) +
                   " bytes from or to pageable host memory, which is not asynchronous");
    }
    wait = true;
  }
  count_bytes(copy, *target, *source);
  std::shared_ptr<void> read;
  if (*source == Space::kPageLocked) {
    read = note_read(copy.source, copy.source_bytes());
  }
  if (*target == Space::kPageLocked && !is_to_be_read(copy.target, copy.target_bytes())) {
    for (std::size_t row = 0; row < copy.height; ++row) {
      std::memset(copy.target + row * copy.target_pitch, kPoison, copy.width);
    }
  }
  const bool spoilt = peer_copies_spoilt && *target == Space::kDevice &&
                      *source == Space::kDevice && device_of(copy.target) != device_of(copy.source);
  const Progress end = enqueue(stream, {[copy, read, spoilt] {
                                          copy.run();
                                          if (spoilt) copy.target[copy.target_bytes() - 1] ^= 1;
                                        },
                                        call.when_run});
  return wait ? run_until(end) : cudaSuccess;
}

cudaError_t start_fill(void* begin, int value, std::size_t bytes, cudaStream_t handle) {
  const CallOutcome call = begin_call(Call::kCopy);
  if (call.now != cudaSuccess) {
    return call.now;
  }
  const StreamPointer stream = find_stream(handle);
  if (stream == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  if (bytes == 0) {
    return cudaSuccess;
  }
  const std::optional<Space> space = space_of(begin, bytes);
  if (!space || *space == Space::kPageable) {
    return record(cudaErrorInvalidValue);
  }
  enqueue(stream, {[=] { std::memset(begin, value, bytes); }, call.when_run});
  return cudaSuccess;
}

Copy contiguous(void* target, const void* source, std::size_t bytes) {
  return {static_cast<unsigned char*>(target),
          bytes,
          static_cast<const unsigned char*>(source),
          bytes,
          bytes,
          1};
}

}  // namespace

void spoil_peer_copies(bool spoil) { peer_copies_spoilt = spoil; }

}  // namespace attnscope::cuda::emulation

using namespace attnscope::cuda::emulation;

cudaError_t cudaMemcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  return start_copy(contiguous(dst, src, bytes), kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return start_copy(contiguous(dst, src, bytes), kind, stream, false);
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  if (width > dpitch || width > spitch) {
    return record(cudaErrorInvalidPitchValue);
  }
  return start_copy({static_cast<unsigned char*>(dst), dpitch,
                     static_cast<const unsigned char*>(src), spitch, width, height},
                    kind, stream, false);
}

cudaError_t cudaMemset(void* devPtr, int value, size_t bytes) {
  return start_fill(devPtr, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t bytes, cudaStream_t stream) {
  return start_fill(devPtr, value, bytes, stream);
}
