#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "io/posix_file.h"

namespace attnscope {

/// A file that appears under its name only when it is complete: written as PATH.part, which is
/// removed when this is destroyed before commit(). Not thread-safe.
class PartFile {
 public:
  /// Throws Error(file) when the folder is missing or cannot be written, PATH is a folder, or
  /// PATH.part exists (it may be somebody's unfinished export).
  explicit PartFile(std::filesystem::path path);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  const std::filesystem::path& part_path() const { return part_; }
  /// Creates PATH.part and appends to it; not for files that a library creates there.
  void append(std::span<const std::byte> bytes);
  /// Makes the file durable and renames it to PATH, replacing what is there.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path part_;
  bool committed_ = false;
  PosixFile file_;
  int64_t size_ = 0;
};

}  // namespace attnscope
