#include "tests/cuda/emulation/device_memory.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>

#include "tests/cuda/emulation/guarded_memory.h"
#include "tests/cuda/emulation/streams.h"

namespace attnscope::cuda::emulation {
namespace {

struct Allocation {
  std::size_t size;
  Space space;
  int device;
};

struct Allocations {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> by_address;

  std::size_t bytes_on(int device) const {
    std::size_t sum = 0;
    for (const auto& [address, allocation] : by_address) {
      sum +=
          allocation.space == Space::kDevice && allocation.device == device ? allocation.size : 0;
    }
    return sum;
  }
};

Allocations& allocations() {
  static Allocations the_allocations;
  return the_allocations;
}

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

void count_allocation(const Allocation& allocation, bool added) {
  count([&](Counters& counters) {
    const bool on_device = allocation.space == Space::kDevice;
    std::size_t& number = on_device ? counters.device_allocations : counters.host_allocations;
    std::size_t& bytes = on_device ? counters.device_bytes : counters.host_bytes;
    number = added ? number + 1 : number - 1;
    bytes = added ? bytes + allocation.size : bytes - allocation.size;
  });
}

void* allocate(std::size_t size, Space space) {
  const Allocation allocation{size, space, current_device()};
  unsigned char* memory = allocate_guarded(size);
  {
    const std::lock_guard lock(allocations().mutex);
    allocations().by_address.emplace(address_of(memory), allocation);
  }
  count_allocation(allocation, true);
  return memory;
}

// False: there is no such memory.
bool release(void* pointer, Space space) {
  Allocations& all = allocations();
  Allocation allocation{};
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_address.find(address_of(pointer));
    if (found == all.by_address.end() || found->second.space != space) {
      return false;
    }
    allocation = found->second;
    all.by_address.erase(found);
  }
  auto* memory = static_cast<unsigned char*>(pointer);
  if (!guards_intact(memory)) {
    fail_program("bytes next to an allocation of " + std::to_string(allocation.size) + " " +
                 (space == Space::kDevice ? "device" : "page-locked") +
                 " bytes were written (seen when it is freed)");
  }
  release_guarded(memory);
  count_allocation(allocation, false);
  return true;
}

cudaError_t free_memory(void* pointer, Space space) {
  if (pointer == nullptr) {
    return begin_call();
  }
  // As on a device, nothing that is queued outlives its memory.
  run_all(current_device());
  // A broken context still lets go of its memory here, so that counters tell leaks.
  if (!release(pointer, space)) {
    return record(cudaErrorInvalidValue);
  }
  return begin_call();
}

}  // namespace

std::optional<Space> space_of(const void* begin, std::size_t bytes) {
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  const std::uintptr_t address = address_of(begin);
  auto next = all.by_address.upper_bound(address);
  if (next == all.by_address.begin()) {
    return Space::kPageable;
  }
  const auto& [start, allocation] = *--next;
  if (address >= start + std::max<std::size_t>(allocation.size, 1)) {
    return Space::kPageable;
  }
  if (bytes > start + allocation.size - address) {
    return std::nullopt;
  }
  return allocation.space;
}

int device_of(const void* pointer) {
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  const auto next = all.by_address.upper_bound(address_of(pointer));
  return next == all.by_address.begin() ? current_device() : std::prev(next)->second.device;
}

void reset_memory() {
  Allocations& all = allocations();
  for (;;) {
    void* pointer = nullptr;
    Space space{};
    {
      const std::lock_guard lock(all.mutex);
      if (all.by_address.empty()) {
        return;
      }
      pointer = reinterpret_cast<void*>(all.by_address.begin()->first);
      space = all.by_address.begin()->second.space;
    }
    release(pointer, space);
  }
}

}  // namespace attnscope::cuda::emulation

using namespace attnscope::cuda::emulation;

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (const CallOutcome call = begin_call(Call::kMemGetInfo); call.now != cudaSuccess) {
    return call.now;
  }
  const std::vector<Device> all = devices();
  if (all.empty()) {
    return record(cudaErrorNoDevice);
  }
  const int index = current_device();
  const Device& device = all[static_cast<std::size_t>(index)];
  const std::lock_guard lock(allocations().mutex);
  const std::size_t used = allocations().bytes_on(index) + device.memory_of_others;
  *total = device.memory;
  *free = device.memory - std::min(used, device.memory);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  if (const CallOutcome call = begin_call(Call::kMalloc); call.now != cudaSuccess) {
    return call.now;
  }
  const std::vector<Device> all = devices();
  if (all.empty()) {
    return record(cudaErrorNoDevice);
  }
  *devPtr = nullptr;
  if (size == 0) {
    return cudaSuccess;
  }
  const AllocationRules rules = begin_malloc();
  const int index = current_device();
  const Device& device = all[static_cast<std::size_t>(index)];
  const std::size_t usable = device.memory - std::min(device.memory_of_others, device.memory);
  std::size_t used = 0;
  {
    const std::lock_guard lock(allocations().mutex);
    used = allocations().bytes_on(index);
  }
  const std::size_t limit = std::min(rules.limit, usable);
  if (rules.this_one_fails || used > limit || size > limit - used) {
    return record(cudaErrorMemoryAllocation);
  }
  try {
    *devPtr = allocate(size, Space::kDevice);
  } catch (const std::bad_alloc&) {
    return record(cudaErrorMemoryAllocation);
  }
  return cudaSuccess;
}

cudaError_t cudaFree(void* devPtr) { return free_memory(devPtr, Space::kDevice); }

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  if (const CallOutcome call = begin_call(Call::kHostAlloc); call.now != cudaSuccess) {
    return call.now;
  }
  if (flags > (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)) {
    return record(cudaErrorInvalidValue);
  }
  if (devices().empty()) {
    return record(cudaErrorNoDevice);
  }
  *pHost = nullptr;
  if (size == 0) {
    return cudaSuccess;
  }
  try {
    *pHost = allocate(size, Space::kPageLocked);
  } catch (const std::bad_alloc&) {
    return record(cudaErrorMemoryAllocation);
  }
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* ptr) { return free_memory(ptr, Space::kPageLocked); }
