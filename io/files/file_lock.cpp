#include "io/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>

#include "io/files/posix_file.h"

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

std::filesystem::path owner_file(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  return file += ".owner";
}

struct Owner {
  std::string host;
  int64_t process = 0;
};

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::optional<Owner> read_owner(const std::filesystem::path& file) {
  std::ifstream stream(file);
  Owner owner;
  if (stream >> owner.host >> owner.process) return owner;
  return std::nullopt;
}

/// Whether the process that wrote the file is known to be gone.
bool is_gone(const std::optional<Owner>& owner) {
  return owner && owner->host == host_name() && owner->process > 0 &&
         ::kill(static_cast<pid_t>(owner->process), 0) != 0 && errno == ESRCH;
}

}  // namespace

void FileLock::take_owner_file(const std::filesystem::path& what) {
  const std::filesystem::path file = owner_file(path_);
  while (true) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      const std::string text = host_name() + " " + std::to_string(getpid()) + "\n";
      const bool written =
          ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
      const int error_number = errno;
      ::close(descriptor);
      owner_ = file;
      if (!written) {
        ::unlink(file.c_str());
        throw errno_error(file, "cannot be written", error_number);
      }
      return;
    }
    if (errno != EEXIST) throw errno_error(file, "cannot be created", errno);
    const auto owner = read_owner(file);
    if (is_gone(owner)) {
      ::unlink(file.c_str());
      continue;
    }
    throw file_error(what.string(), "",
                     "is being written by another run" +
                         (owner ? " (process " + std::to_string(owner->process) + " on " +
                                      owner->host + "; if it is gone, remove " + file.string() + ")"
                                : " (if it is gone, remove " + file.string() + ")"));
  }
}

FileLock::FileLock(std::filesystem::path path, const std::filesystem::path& what)
    : path_(std::move(path)) {
  while (true) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw errno_error(path_, "cannot be created", errno);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int error_number = errno;
      ::close(descriptor_);
      if (error_number == EINTR) continue;
      if (error_number == ENOLCK || error_number == EOPNOTSUPP || error_number == ENOSYS) {
        descriptor_ = -1;
        take_owner_file(what);
        return;
      }
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
  if (!owner_.empty()) {
    ::unlink(path_.c_str());
    ::unlink(owner_.c_str());
    return;
  }
  // Removed while it is still held, so that nobody's fresh lock is taken away. A file with content
  // is somebody else's that happens to have the name.
  struct stat info {};
  if (::fstat(descriptor_, &info) == 0 && info.st_size == 0) ::unlink(path_.c_str());
  ::close(descriptor_);
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const auto owner = read_owner(owner_file(path));
  if (owner && !is_gone(owner)) return true;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

}  // namespace attnscope
