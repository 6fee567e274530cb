#include "kernels/common/flush_denormals.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace attnscope {

#if defined(__x86_64__)

namespace {
constexpr unsigned kFlushToZero = 0x8000;
constexpr unsigned kDenormalsAreZero = 0x0040;
}  // namespace

FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  _mm_setcsr(static_cast<unsigned>(saved_) | kFlushToZero | kDenormalsAreZero);
}
FlushDenormals::~FlushDenormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }

#elif defined(__aarch64__)

namespace {
constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
}  // namespace

FlushDenormals::FlushDenormals() {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  const uint64_t flushing = saved_ | kFlushToZero;
  asm volatile("msr fpcr, %0" : : "r"(flushing) : "memory");
}
FlushDenormals::~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_) : "memory"); }

#else

FlushDenormals::FlushDenormals() = default;
FlushDenormals::~FlushDenormals() = default;

#endif

}  // namespace attnscope
