#include "tests/cuda/emulation/guarded_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/cuda/emulation/address_sanitizer.h"

namespace attnscope::cuda::emulation {
namespace {

// The size of the memory stands at the start of what is allocated, then guard bytes up to the
// memory, then guard bytes behind it.
constexpr std::size_t kBefore = 256;
constexpr std::size_t kBehind = 256;
constexpr unsigned char kGuard = 0xa5;

bool all_guards(const unsigned char* begin, const unsigned char* end) {
  return std::all_of(begin, end, [](unsigned char byte) { return byte == kGuard; });
}

}  // namespace

unsigned char* allocate_guarded(std::size_t size) {
  const std::size_t total = (kBefore + size + kBehind + kBefore - 1) / kBefore * kBefore;
  auto* start =
      total < size ? nullptr : static_cast<unsigned char*>(std::aligned_alloc(kBefore, total));
  if (start == nullptr) {
    throw std::bad_alloc();
  }
  unsigned char* memory = start + kBefore;
  std::memset(start, kGuard, kBefore);
  std::memcpy(start, &size, sizeof(size));
  std::memset(memory, kPoison, size);
  std::memset(memory + size, kGuard, kBehind);
  ASAN_POISON_MEMORY_REGION(start, kBefore);
  ASAN_POISON_MEMORY_REGION(memory + size, kBehind);
  return memory;
}

bool guards_intact(const unsigned char* memory) {
  const unsigned char* start = memory - kBefore;
  ASAN_UNPOISON_MEMORY_REGION(start, kBefore);
  std::size_t size = 0;
  std::memcpy(&size, start, sizeof(size));
  ASAN_UNPOISON_MEMORY_REGION(memory + size, kBehind);
  const bool intact = all_guards(start + sizeof(size), memory) &&
                      all_guards(memory + size, memory + size + kBehind);
  ASAN_POISON_MEMORY_REGION(start, kBefore);
  ASAN_POISON_MEMORY_REGION(memory + size, kBehind);
  return intact;
}

void release_guarded(unsigned char* memory) {
  if (memory == nullptr) {
    return;
  }
  unsigned char* start = memory - kBefore;
  ASAN_UNPOISON_MEMORY_REGION(start, kBefore);
  std::size_t size = 0;
  std::memcpy(&size, start, sizeof(size));
  ASAN_UNPOISON_MEMORY_REGION(memory + size, kBehind);
  std::free(start);
}

}  // namespace attnscope::cuda::emulation
