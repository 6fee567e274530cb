#include "kernels/common/tile_unit.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#endif

namespace attnscope {
namespace {

#if defined(__x86_64__) && defined(__linux__)

constexpr unsigned kBf16Tiles = 1u << 22;  // CPUID 7.0, EDX
constexpr unsigned kTiles = 1u << 24;
constexpr unsigned kF16Tiles = 1u << 21;      // CPUID 7.1, EAX
constexpr unsigned kByteShifts = 1u << 1;     // AVX512_VBMI: CPUID 7.0, ECX
constexpr unsigned kStateByXsave = 1u << 27;  // CPUID 1, ECX
constexpr uint32_t kTileState = 3u << 17;     // XCR0: configuration and data
constexpr long kRequestPermission = 0x1023;   // arch_prctl(ARCH_REQ_XCOMP_PERM, …)
constexpr long kTileData = 18;

bool processor_has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & kBf16Tiles) != 0 && (d & kTiles) != 0 && (c & kByteShifts) != 0;
}

bool processor_has_f16_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kF16Tiles) != 0;
}

bool system_keeps_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kStateByXsave) == 0) return false;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

std::string find_obstacle() {
  if (!processor_has_tiles()) return "this processor has no AMX with bf16 (beside AVX512_VBMI)";
  if (!system_keeps_tiles()) return "the operating system does not keep AMX's registers";
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0) return "";
  // Not a matter of a disk.
  const std::string why =
      errno == ENOSPC ? "a thread's signal stack is too small" : std::strerror(errno);
  return "the operating system does not let this process use AMX (" + why + ")";
}

#else

bool processor_has_tiles() { return false; }
bool processor_has_f16_tiles() { return false; }

std::string find_obstacle() { return "AMX needs Linux on an x86-64 processor"; }

#endif

}  // namespace

const TileUnit& tile_unit() {
  static const TileUnit unit = [] {
    std::string obstacle = find_obstacle();
    const bool usable = obstacle.empty();
    return TileUnit{processor_has_tiles(), usable, processor_has_f16_tiles(), std::move(obstacle)};
  }();
  return unit;
}

}  // namespace attnscope
