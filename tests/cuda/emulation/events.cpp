#include <utility>

#include "tests/cuda/emulation/runtime_state.h"
#include "tests/cuda/emulation/streams.h"

using namespace attnscope::cuda::emulation;

namespace {

Progress recorded_in(CUevent_st& event) {
  const std::lock_guard lock(event.mutex);
  return event.recorded;
}

bool is_done(const Progress& progress) {
  return progress.stream == nullptr || progress.stream->done >= progress.position;
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (const CallOutcome call = begin_call(Call::kCreateEvent); call.now != cudaSuccess) {
    return call.now;
  }
  if ((flags & ~unsigned{cudaEventBlockingSync | cudaEventDisableTiming}) != 0) {
    return record(cudaErrorInvalidValue);
  }
  if (devices().empty()) {
    return record(cudaErrorNoDevice);
  }
  *event = new CUevent_st;
  (*event)->device = current_device();
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  count([](Counters& counters) { ++counters.events; });
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  delete event;
  count([](Counters& counters) { --counters.events; });
  return begin_call();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const CallOutcome call = begin_call(Call::kRecordEvent); call.now != cudaSuccess) {
    return call.now;
  }
  const StreamPointer found = find_stream(stream);
  if (found == nullptr || event == nullptr || event->device != found->device) {
    return record(cudaErrorInvalidResourceHandle);
  }
  auto when = std::make_shared<CUevent_st::Clock::time_point>();
  Progress recorded = enqueue(found, {[when] { *when = CUevent_st::Clock::now(); }});
  const std::lock_guard lock(event->mutex);
  event->recorded = std::move(recorded);
  event->when = std::move(when);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const CallOutcome call = begin_call(Call::kSynchronize); call.now != cudaSuccess) {
    return call.now;
  }
  if (event == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  count([](Counters& counters) { ++counters.synchronisations; });
  const Progress recorded = recorded_in(*event);
  return recorded.stream == nullptr ? cudaSuccess : run_until(recorded);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = begin_call(); error != cudaSuccess) {
    return error;
  }
  if (event == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  const Progress recorded = recorded_in(*event);
  if (is_done(recorded)) {
    return cudaSuccess;
  }
  run_until({recorded.stream, recorded.stream->done + 1});
  return sticky_error() != cudaSuccess ? record(sticky_error()) : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = begin_call(); error != cudaSuccess) {
    return error;
  }
  for (const cudaEvent_t event : {start, end}) {
    if (event == nullptr || !event->timed || recorded_in(*event).stream == nullptr) {
      return record(cudaErrorInvalidResourceHandle);
    }
  }
  for (const cudaEvent_t event : {start, end}) {
    if (!is_done(recorded_in(*event))) {
      return cudaErrorNotReady;
    }
  }
  *ms = std::chrono::duration<float, std::milli>(*end->when - *start->when).count();
  return cudaSuccess;
}
