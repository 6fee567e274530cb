#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace attnscope {

/// Why a lock in a file system that several hosts see keeps none but this host's processes away, as
/// its mount tells: "nfs4, local_lock=all". Empty where it reaches all of them, the file system is
/// one host's, or nothing is known of it. `mounts`: /proc/self/mountinfo; `number`: of the mount.
std::string locks_of_one_host(std::string_view mounts, uint64_t number);

/// Asks the system for the mount of a file that is there; empty also where it does not tell it.
std::string locks_of_one_host(const std::filesystem::path& file);

}  // namespace attnscope
