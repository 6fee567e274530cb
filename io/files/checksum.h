#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace attnscope {

/// What the attribute `algorithm` of checksum datasets says: the low 32 bits of XXH3's 64-bit hash,
/// seed 0.
constexpr std::string_view kChecksumAlgorithm = "xxh3-64-low32";

/// The checksum of some bytes. Thread-safe.
uint32_t checksum(std::span<const std::byte> bytes);
/// All 64 bits of that hash. Thread-safe.
uint64_t checksum64(std::span<const std::byte> bytes);

}  // namespace attnscope
