#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attnscope {

/// Bytes of memory that this process can still take: what the kernel calls available, or less where
/// a control group limits it.
int64_t available_memory();

/// Bytes that the control group `group` ("/a/b", version 2) below the folder `root` and its parents
/// leave of their limits, cached files counted as free; nothing where none has a limit.
std::optional<int64_t> control_group_memory(const std::string& root, const std::string& group);

/// The most memory this process has had resident so far, in bytes.
int64_t peak_resident_memory();

}  // namespace attnscope
