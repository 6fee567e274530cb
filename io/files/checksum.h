#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>

namespace attnscope {

/// The value of the attribute `algorithm` of checksum datasets: the low 32 bits of XXH3's 64-bit
/// hash, with seed 0.
constexpr std::string_view kChecksumAlgorithm = "xxh3-64-low32";

/// The checksum of some bytes. Thread-safe.
uint32_t checksum(std::span<const std::byte> bytes);
/// All 64 bits of that hash. Thread-safe.
uint64_t checksum64(std::span<const std::byte> bytes);

/// Computes checksum64() of bytes that come in pieces. Not thread-safe.
class RunningChecksum {
 public:
  RunningChecksum();
  void add(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

/// XXH3-64 of a whole file, and its size. Throws Error(file), Error(interrupted) soon after a stop.
uint64_t file_checksum(const std::filesystem::path& path, std::stop_token stop,
                       int64_t* bytes = nullptr);

}  // namespace attnscope
