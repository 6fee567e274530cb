#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "io/files/descriptor.h"

namespace attnscope {

/// The treatment of symbolic links on the way to a file.
enum class Links : uint8_t { refuse, follow };

/// A folder that stays the same, whatever becomes of its name: files are found in it and below it.
/// Immutable; thread-safe.
class InputFolder {
 public:
  /// `path` itself may be a link. Throws Error(file) where it cannot be opened or is no folder.
  explicit InputFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  /// `file` relative to the folder, for a name that begins with the folder's and has no "..";
  /// nothing for others.
  std::optional<std::filesystem::path> inner_name(const std::filesystem::path& file) const;
  /// open_beneath() of a name within the folder, or with Links::follow openat(2). Not open, with
  /// errno, where that fails.
  Descriptor open(const std::filesystem::path& inner, int flags, Links links) const;

 private:
  std::filesystem::path path_;
  Descriptor folder_;
};

}  // namespace attnscope
