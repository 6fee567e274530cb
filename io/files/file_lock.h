#pragma once

#include <filesystem>

namespace attnscope {

/// Exclusive ownership of a lock file between processes and within one, by flock. The file's
/// presence means nothing; who holds the lock removes it when done. Where the file system has no
/// flock, ownership is a file PATH.owner instead, created exclusively, with host and process: one
/// that a killed process of this host left is taken over, one of another host must be removed by
/// hand.
class FileLock {
 public:
  /// Creates the file where it is missing and takes the lock without waiting. Throws Error(file)
  /// saying that `what` is being written when somebody else holds it.
  FileLock(std::filesystem::path path, const std::filesystem::path& what);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  /// Whether PATH.owner had to do.
  bool without_flock() const { return !owner_.empty(); }

  /// Whether somebody holds the lock now; creates nothing.
  static bool is_held(const std::filesystem::path& path);

 private:
  void take_owner_file(const std::filesystem::path& what);

  std::filesystem::path path_;
  std::filesystem::path owner_;
  int descriptor_ = -1;
};

}  // namespace attnscope
