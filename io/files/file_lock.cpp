#include "io/files/file_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "io/files/file_text.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using std::filesystem::path;
using Clock = std::chrono::steady_clock;

/// A holder may have been killed a moment ago: so long it may take until that is seen.
constexpr std::chrono::seconds kNotice{1};
/// … and so long, at most, until it has given its memory back: the locks go after that.
constexpr std::chrono::seconds kEnding{60};

/// The lock files that this process holds. The system's locks keep processes apart, not parts of
/// one, and a process that closes any descriptor of a file loses its lock of it: so it is asked
/// here first, and what is held is never opened again.
struct HeldFiles {
  std::mutex mutex;
  std::set<std::pair<dev_t, ino_t>> files;
};

HeldFiles& held_files() {
  static HeldFiles held;
  return held;
}

/// With the mutex of held_files() taken.
bool is_held_here(const path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 &&
         held_files().files.count({info.st_dev, info.st_ino}) != 0;
}

/// True where the path still names the open file: its last holder may have removed it between our
/// open and our lock, and then the lock would protect nothing.
bool names_descriptor(const path& file, int descriptor) {
  struct stat named {};
  struct stat opened {};
  return ::stat(file.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/// All of a file, to be written.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Who keeps us from locking the open file: a process, 0 where the system does not say which;
/// nothing where nobody does.
std::optional<pid_t> holder_of(int descriptor) {
  struct flock lock = whole_file();
  if (::fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return std::max(lock.l_pid, pid_t{0});
}

/// The state of a process's first thread, from /proc.
struct ProcessState {
  char state = '?';
  uint64_t flags = 0;
  bool is_zombie() const { return state == 'Z' || state == 'X'; }
};

std::optional<ProcessState> process_state(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The name before it, in brackets, may hold anything.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcessState result;
  std::string skipped;
  fields >> result.state;
  for (int i = 0; i < 5; ++i) fields >> skipped;
  if (fields >> result.flags) return result;
  return std::nullopt;
}

/// True of a process that is gone, or was told to end and does, though it may take a while.
bool is_ending(pid_t process) {
  constexpr uint64_t kExiting = 4;  // PF_EXITING of the kernel
  const auto state = process_state(process);
  return !state || state->is_zombie() || (state->flags & kExiting) != 0;
}

/// Waits for a holder that was killed; false when it lives on. One that has ended and whose parent
/// has taken no notice is gone.
bool ends_soon(pid_t process, Clock::time_point since) {
  if (process <= 0) return false;
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  // Older systems cannot wait for it.
  if (descriptor < 0) return ::kill(process, 0) != 0 && errno == ESRCH;
  bool ended = false;
  // In pieces: whether it is ending may show while we wait.
  constexpr int kPieceMs = 100;
  do {
    pollfd poller{descriptor, POLLIN, 0};
    ended = ::poll(&poller, 1, kPieceMs) > 0;
  } while (!ended && Clock::now() < since + (is_ending(process) ? kEnding : kNotice));
  ::close(descriptor);
  return ended;
}

Error is_being_written(const path& what) {
  return file_error(what.string(), "", "is being written by another run");
}

path owner_file(const path& file) {
  path owner = file;
  return owner += ".owner";
}

/// Names of hosts are shorter.
constexpr size_t kMostOwnerBytes = 1024;

struct Owner {
  std::string host;
  int64_t process = 0;
};

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::optional<Owner> read_owner(const path& file) {
  std::istringstream stream(beginning_of_file(file, kMostOwnerBytes));
  Owner owner;
  if (stream >> owner.host >> owner.process) return owner;
  return std::nullopt;
}

/// True where the process that wrote the owner file is known to be gone.
bool is_gone(const std::optional<Owner>& owner) {
  return owner && owner->host == host_name() && owner->process != getpid() &&
         ends_soon(static_cast<pid_t>(owner->process), Clock::now());
}

/// True of the errors by which the system says that the file system has no locks.
bool means_no_locks(int error_number) {
  return error_number == ENOLCK || error_number == EOPNOTSUPP || error_number == ENOSYS ||
         error_number == EINVAL;
}

}  // namespace

void FileLock::take_owner_file(const path& what) {
  const path file = owner_file(path_);
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

FileLock::FileLock(path file, const path& what) : path_(std::move(file)) {
  const Clock::time_point begin = Clock::now();
  while (true) {
    std::unique_lock guard(held_files().mutex);
    if (is_held_here(path_)) throw is_being_written(what);
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw errno_error(path_, "cannot be created", errno);
    struct flock lock = whole_file();
    if (::fcntl(descriptor_, F_SETLK, &lock) == 0) {
      struct stat info {};
      if (names_descriptor(path_, descriptor_) && ::fstat(descriptor_, &info) == 0) {
        held_files().files.insert({info.st_dev, info.st_ino});
        return;
      }
      ::close(std::exchange(descriptor_, -1));
      continue;
    }
    const int error_number = errno;
    const bool held = error_number == EAGAIN;
    const std::optional<pid_t> holder = held ? holder_of(descriptor_) : std::nullopt;
    ::close(std::exchange(descriptor_, -1));
    guard.unlock();
    if (error_number == EINTR) continue;
    if (means_no_locks(error_number)) {
      take_owner_file(what);
      return;
    }
    if (!held) throw errno_error(path_, "cannot be locked", error_number);
    // Without a holder, it ended between our two questions, unless that is said again and again.
    const bool ended = holder ? ends_soon(*holder, begin) : Clock::now() < begin + kNotice;
    if (!ended) throw is_being_written(what);
  }
}

FileLock::~FileLock() {
  if (!owner_.empty()) {
    ::unlink(path_.c_str());
    ::unlink(owner_.c_str());
    return;
  }
  const std::lock_guard guard(held_files().mutex);
  // Removed while it is still held, so that nobody's fresh lock is taken away. A file with content
  // is somebody else's that happens to have the name.
  struct stat info {};
  if (::fstat(descriptor_, &info) == 0) {
    held_files().files.erase({info.st_dev, info.st_ino});
    if (info.st_size == 0) ::unlink(path_.c_str());
  }
  ::close(descriptor_);
}

bool FileLock::is_held(const path& file) {
  const auto owner = read_owner(owner_file(file));
  if (owner && !is_gone(owner)) return true;
  const Clock::time_point begin = Clock::now();
  while (true) {
    std::unique_lock guard(held_files().mutex);
    if (is_held_here(file)) return true;
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return false;
    const std::optional<pid_t> holder = holder_of(descriptor);
    ::close(descriptor);
    guard.unlock();
    if (!holder) return false;
    if (!ends_soon(*holder, begin)) return true;
  }
}

}  // namespace attnscope
