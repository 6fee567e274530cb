#pragma once

#include <cstdint>

namespace attnscope {

/// Bytes of memory that this process can still take: what the kernel calls available, or less where
/// a control group limits it.
int64_t available_memory();

/// The most memory this process has had resident so far, in bytes.
int64_t peak_resident_memory();

}  // namespace attnscope
