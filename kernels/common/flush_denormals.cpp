#include "kernels/common/flush_denormals.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace attnscope {
namespace {

#if defined(__x86_64__)

/// Results, and operands.
constexpr uint64_t kFlushes = 0x8000 | 0x0040;

uint64_t floating_point_state() { return _mm_getcsr(); }
void set_floating_point_state(uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }

#elif defined(__aarch64__)

constexpr uint64_t kFlushes = uint64_t{1} << 24;

uint64_t floating_point_state() {
  uint64_t state;
  asm volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
void set_floating_point_state(uint64_t state) {
  asm volatile("msr fpcr, %0" : : "r"(state) : "memory");
}

#else

constexpr uint64_t kFlushes = 0;

uint64_t floating_point_state() { return 0; }
void set_floating_point_state(uint64_t) {}

#endif

}  // namespace

FlushDenormals::FlushDenormals() : saved_(floating_point_state()) {
  set_floating_point_state(saved_ | kFlushes);
}
FlushDenormals::~FlushDenormals() { set_floating_point_state(saved_); }

KeepDenormals::KeepDenormals() : saved_(floating_point_state()) {
  set_floating_point_state(saved_ & ~kFlushes);
}
KeepDenormals::~KeepDenormals() { set_floating_point_state(saved_); }

}  // namespace attnscope
