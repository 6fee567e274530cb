#include "tests/cuda/emulation/streams.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tests/cuda/emulation/runtime_state.h"

namespace attnscope::cuda::emulation {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<int, StreamPointer> defaults;  // by device
  std::vector<StreamPointer> created;
  std::vector<StreamPointer> destroyed;  // whose operations may still be queued
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

Progress all_of(const StreamPointer& stream) {
  const std::lock_guard lock(stream->mutex);
  return {stream, stream->queued};
}

StreamPointer default_stream(int device) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  StreamPointer& stream = all.defaults[device];
  if (stream == nullptr) {
    stream = std::make_shared<CUstream_st>();
    stream->device = device;
    stream->is_default = true;
  }
  return stream;
}

std::vector<StreamPointer> streams_of(int device) {
  default_stream(device);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.destroyed, [](const StreamPointer& stream) {
    const std::lock_guard queue_lock(stream->mutex);
    return stream->done == stream->queued;
  });
  std::vector<StreamPointer> found = all.destroyed;
  // The latest first: nobody may count on the order in which they were created.
  found.insert(found.end(), all.created.rbegin(), all.created.rend());
  found.push_back(all.defaults[device]);
  std::erase_if(found, [&](const StreamPointer& stream) { return stream->device != device; });
  return found;
}

void run_first(const StreamPointer& stream) {
  Operation operation;
  {
    const std::lock_guard lock(stream->mutex);
    operation = std::move(stream->queue.front());
    stream->queue.pop_front();
  }
  for (const Progress& before : operation.after) {
    run_until(before);
  }
  if (sticky_error() == cudaSuccess) {
    if (operation.fails != cudaSuccess) {
      set_sticky_error(operation.fails);
    } else {
      operation.run();
    }
  }
  ++stream->done;
}

}  // namespace

StreamPointer find_stream(cudaStream_t handle) {
  if (handle == nullptr) {
    return default_stream(current_device());
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find_if(all.created.begin(), all.created.end(),
                                  [&](const StreamPointer& each) { return each.get() == handle; });
  return found == all.created.end() ? nullptr : *found;
}

Progress enqueue(const StreamPointer& stream, Operation operation) {
  if (stream->is_default) {
    for (const StreamPointer& other : streams_of(stream->device)) {
      if (other != stream && other->blocking) {
        operation.after.push_back(all_of(other));
      }
    }
  } else if (stream->blocking) {
    operation.after.push_back(all_of(default_stream(stream->device)));
  }
  const std::lock_guard lock(stream->mutex);
  stream->queue.push_back(std::move(operation));
  return {stream, ++stream->queued};
}

cudaError_t run_until(const Progress& progress) {
  // Two threads never wait for each other here: an operation only depends on operations queued
  // before it.
  while (progress.stream->done < progress.position) {
    const std::lock_guard lock(progress.stream->execution);
    if (progress.stream->done < progress.position) {
      run_first(progress.stream);
    }
  }
  return record(sticky_error());
}

cudaError_t run_all(int device) {
  for (const StreamPointer& stream : streams_of(device)) {
    run_until(all_of(stream));
  }
  return record(sticky_error());
}

void reset_streams() {
  Registry& all = registry();
  std::vector<StreamPointer> dropped;
  {
    const std::lock_guard lock(all.mutex);
    dropped = std::exchange(all.created, {});
    dropped.insert(dropped.end(), all.destroyed.begin(), all.destroyed.end());
    for (const auto& [device, stream] : all.defaults) {
      dropped.push_back(stream);
    }
    all.destroyed.clear();
    all.defaults.clear();
  }
  // Queued operations that wait for other streams would keep them alive in a circle.
  for (const StreamPointer& stream : dropped) {
    const std::lock_guard lock(stream->mutex);
    stream->queue.clear();
  }
}

}  // namespace attnscope::cuda::emulation

using namespace attnscope::cuda::emulation;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  if (const CallOutcome call = begin_call(Call::kCreateStream); call.now != cudaSuccess) {
    return call.now;
  }
  if (flags > cudaStreamNonBlocking) {
    return record(cudaErrorInvalidValue);
  }
  if (devices().empty()) {
    return record(cudaErrorNoDevice);
  }
  auto stream = std::make_shared<CUstream_st>();
  stream->device = current_device();
  stream->blocking = flags != cudaStreamNonBlocking;
  *pStream = stream.get();
  {
    const std::lock_guard lock(registry().mutex);
    registry().created.push_back(std::move(stream));
  }
  count([](Counters& counters) { ++counters.streams; });
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Registry& all = registry();
  {
    const std::lock_guard lock(all.mutex);
    const auto found =
        std::find_if(all.created.begin(), all.created.end(),
                     [&](const StreamPointer& each) { return each.get() == stream; });
    if (found == all.created.end()) {
      return record(cudaErrorInvalidResourceHandle);
    }
    all.destroyed.push_back(*found);
    all.created.erase(found);
  }
  count([](Counters& counters) { --counters.streams; });
  return begin_call();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const CallOutcome call = begin_call(Call::kSynchronize); call.now != cudaSuccess) {
    return call.now;
  }
  const StreamPointer found = find_stream(stream);
  if (found == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  count([](Counters& counters) { ++counters.synchronisations; });
  return run_until(all_of(found));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = begin_call(); error != cudaSuccess) {
    return error;
  }
  const StreamPointer found = find_stream(stream);
  if (found == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  const Progress end = all_of(found);
  if (found->done >= end.position) {
    return cudaSuccess;
  }
  // Who asks again and again gets on.
  run_until({found, found->done + 1});
  return sticky_error() != cudaSuccess ? record(sticky_error()) : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  if (const CallOutcome call = begin_call(Call::kSynchronize); call.now != cudaSuccess) {
    return call.now;
  }
  if (devices().empty()) {
    return record(cudaErrorNoDevice);
  }
  count([](Counters& counters) { ++counters.synchronisations; });
  return run_all(current_device());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  if (const cudaError_t error = begin_call(); error != cudaSuccess) {
    return error;
  }
  const StreamPointer found = find_stream(stream);
  if (found == nullptr || event == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  Progress before;
  {
    const std::lock_guard lock(event->mutex);
    before = event->recorded;
  }
  if (before.stream != nullptr) {
    enqueue(found, {[] {}, cudaSuccess, {before}});
  }
  return cudaSuccess;
}
