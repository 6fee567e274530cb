#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attnscope {

// Files beside a capture that spare work the next time. Files of other users and links, also as a
// folder's last part, are passed over: somebody may have laid them into a capture.

/// In the header of each: reads as another number where the byte order differs.
constexpr uint64_t kCacheByteOrder = 0x0102030405060708;

/// The whole file; nothing where there is none of at most `most` bytes that may be read.
std::optional<std::vector<std::byte>> load_cache_file(const std::filesystem::path& folder,
                                                      const std::string& name, int64_t most);

/// Writes a file under a temporary name and renames it; a missing folder is created. Throws
/// Error(file or resource).
void store_cache_file(const std::filesystem::path& folder, const std::string& name,
                      std::span<const std::byte> bytes);

/// The folders that files of a kind are kept in: the first that takes one takes all that follow.
class CacheFolders {
 public:
  explicit CacheFolders(std::vector<std::filesystem::path> folders)
      : folders_(std::move(folders)) {}

  const std::vector<std::filesystem::path>& all() const { return folders_; }
  /// store_cache_file() in the first folder that takes it. Returns what went wrong in every folder;
  /// those that fail are not tried again.
  std::optional<std::string> store(const std::string& name, std::span<const std::byte> bytes);

 private:
  std::vector<std::filesystem::path> folders_;
  size_t first_writable_ = 0;
};

}  // namespace attnscope
