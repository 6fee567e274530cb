#pragma once

#include <filesystem>

namespace attnscope {

/// Exclusive ownership of a lock file between processes and within one, by a record lock of fcntl.
/// Such a lock belongs to the process that took it, not (as flock's) to a descriptor that children
/// inherit: it ends with its holder, whatever became of processes that the holder forked. The
/// file's presence means nothing; who holds the lock removes it when done. Where the file system
/// has no locks, ownership is a file PATH.owner instead, created exclusively, with host and
/// process: one that a killed process of this host left is taken over, one of another host must be
/// removed by hand. Thread-safe; an object is one thread's at a time. The system takes the lock
/// from a process that closes any descriptor of the file: nothing else may open PATH.
class FileLock {
 public:
  /// Creates the file where it is missing and takes the lock. Throws Error(file) saying that `what`
  /// is being written when somebody else holds it; a holder that was killed a moment ago is waited
  /// for instead: for as long as it is seen to be ending, a second otherwise.
  FileLock(std::filesystem::path path, const std::filesystem::path& what);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  /// True where the file system has no locks, so that PATH.owner takes the lock's place.
  bool without_locks() const { return !owner_.empty(); }

  /// True where somebody holds the lock and goes on holding it: a holder who was killed is waited
  /// for as above. Creates nothing.
  static bool is_held(const std::filesystem::path& path);

 private:
  void take_owner_file(const std::filesystem::path& what);

  std::filesystem::path path_;
  std::filesystem::path owner_;
  int descriptor_ = -1;
};

}  // namespace attnscope
