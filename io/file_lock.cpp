#include "io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/posix_file.h"

namespace attnscope {
namespace {

/// Whether the path still names the file that is open: its last holder may have removed it between
/// our open and our flock, and then the lock would protect nothing.
bool names_descriptor(const std::filesystem::path& path, int descriptor) {
  struct stat named {};
  struct stat opened {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

}  // namespace

FileLock::FileLock(std::filesystem::path path, const std::filesystem::path& what)
    : path_(std::move(path)) {
  while (true) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw errno_error(path_, "cannot be created", errno);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int error_number = errno;
      ::close(descriptor_);
      if (error_number == EINTR) continue;
      if (error_number == EWOULDBLOCK) {
        throw file_error(what.string(), "", "is being written by another run");
      }
      throw errno_error(path_, "cannot be locked", error_number);
    }
    if (names_descriptor(path_, descriptor_)) return;
    ::close(descriptor_);
  }
}

FileLock::~FileLock() {
  // Removed while it is still held, so that nobody's fresh lock is taken away. A file with content
  // is somebody else's that happens to have the name.
  struct stat info {};
  if (::fstat(descriptor_, &info) == 0 && info.st_size == 0) ::unlink(path_.c_str());
  ::close(descriptor_);
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

}  // namespace attnscope
