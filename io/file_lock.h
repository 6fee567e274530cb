#pragma once

#include <filesystem>

namespace attnscope {

/// Exclusive ownership of a lock file between processes and within one, by flock. The file's
/// presence means nothing; who holds the lock removes it when done.
class FileLock {
 public:
  /// Creates the file where it is missing and takes the lock without waiting. Throws Error(file)
  /// saying that `what` is being written when somebody else holds it.
  FileLock(std::filesystem::path path, const std::filesystem::path& what);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  /// Whether somebody holds the lock now; creates nothing.
  static bool is_held(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace attnscope
