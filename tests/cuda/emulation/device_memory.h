#pragma once

#include <cstddef>
#include <optional>

#include "tests/cuda/emulation/runtime_state.h"

namespace attnscope::cuda::emulation {

enum class Space { kDevice, kPageLocked, kPageable };

/// Where the bytes lie; none when they begin in an allocation and run beyond its end.
std::optional<Space> space_of(const void* begin, std::size_t bytes);
/// Whose memory it is; the calling thread's device where it is none's.
int device_of(const void* pointer);

}  // namespace attnscope::cuda::emulation
