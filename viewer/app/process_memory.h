#pragma once

#include <cstdint>

namespace attnscope {

/// The bytes of memory that the program takes: its resident size, of a page its heap. 0: not known.
int64_t resident_bytes();

}  // namespace attnscope
