#pragma once

#include <filesystem>
#include <span>

namespace attnscope {

/// How many cores this process may use at once: those of its affinity mask, and the quota of its
/// control group where one is set. Hyper-threads of one core count as one: they share its
/// multipliers, which one thread of the kernels keeps busy. At least 1.
int usable_cores();

/// How many cores the processors of these numbers are, as `folder` tells, which is laid out as
/// Linux has /sys/devices/system/cpu.
int count_cores(std::span<const int> processors, const std::filesystem::path& folder);

}  // namespace attnscope
