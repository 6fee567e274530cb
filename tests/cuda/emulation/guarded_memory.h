#pragma once

#include <cstddef>

namespace attnscope::cuda::emulation {

/// The byte that memory holds before anything is written to it: NaN in every floating-point type.
constexpr unsigned char kPoison = 0xff;

/// size bytes of kPoison, aligned to 256 as device memory is, between guard bytes that
/// AddressSanitizer watches too. Throws std::bad_alloc.
unsigned char* allocate_guarded(std::size_t size);

/// True where the guard bytes around the memory are as they were.
bool guards_intact(const unsigned char* memory);

/// Null is taken.
void release_guarded(unsigned char* memory);

}  // namespace attnscope::cuda::emulation
