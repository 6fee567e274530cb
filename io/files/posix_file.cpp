#include "io/files/posix_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/memory_budget.h"

namespace attnscope {
namespace {

/// One write call takes at most this much. A larger one asks the page cache for larger pieces of
/// memory, which may take the system many times as long to find as to copy to
/// (docs/performance.md).
constexpr size_t kMaxWriteBytes = size_t{512} << 10;
/// Pieces that go to the disk itself, past the page cache, begin and end at multiples of this.
constexpr size_t kPageBytes = 4096;

/// Bytes that an unprivileged process may still write there, or −1 where the system cannot say.
int64_t free_bytes(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0 || info.f_blocks == 0) return -1;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(info.f_bavail, info.f_frsize, &bytes)) return -1;
  return bytes;
}

Error no_space(const std::filesystem::path& file, int64_t needed, int64_t available) {
  return Error(ErrorCode::resource,
               file.string() + ": not enough disk space (needed " + format_bytes(needed) +
                   ", free " + format_bytes(available) + ")",
               {file.string(), ""});
}

}  // namespace

Error errno_error(const std::filesystem::path& file, const std::string& what, int error_number) {
  const bool used_up = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return Error(used_up ? ErrorCode::resource : ErrorCode::file,
               file.string() + ": " + what + ": " + errno_text(error_number), {file.string(), ""});
}

std::optional<FileIdentity> file_identity(const std::filesystem::path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity{info.st_dev, info.st_ino};
}

PosixFile::PosixFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  // Opening a pipe or a device must not wait for its other end.
  const int flags = mode == Mode::create     ? O_RDWR | O_CREAT | O_EXCL
                    : mode == Mode::existing ? O_RDWR | O_NONBLOCK | O_NOFOLLOW
                                             : O_RDONLY | O_NONBLOCK;
  descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw errno_error(path_, mode == Mode::create ? "cannot be created" : "cannot be opened",
                      errno);
  }
  struct stat info {};
  if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    throw file_error(path_.string(), "", "is no regular file");
  }
}

PosixFile::PosixFile(PosixFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      direct_(std::exchange(other.direct_, -1)) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(direct_, other.direct_);
  return *this;
}

PosixFile::~PosixFile() {
  if (direct_ >= 0) ::close(direct_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t PosixFile::size() const {
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) throw errno_error(path_, "cannot be examined", errno);
  return info.st_size;
}

FileIdentity PosixFile::identity() const {
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) throw errno_error(path_, "cannot be looked at", errno);
  return {info.st_dev, info.st_ino};
}

bool PosixFile::bypass_page_cache() {
#if defined(O_DIRECT)
  // By its descriptor: its name may be another file's by now.
  const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
  if (direct_ < 0) direct_ = ::open(self.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
#endif
  return direct_ >= 0;
}

/// pwrite, past the page cache where that is wanted and can be.
int64_t PosixFile::write_some(std::span<const std::byte> bytes, int64_t offset) const {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) | static_cast<uintptr_t>(offset);
  const size_t pages = bytes.size() / kPageBytes * kPageBytes;
  if (direct_ >= 0 && begin % kPageBytes == 0 && pages > 0) {
    const ssize_t written = ::pwrite(direct_, bytes.data(), pages, offset);
    // There are disks whose pieces have to be larger than pages.
    if (written >= 0 || errno != EINVAL) return written;
  }
  return ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
}

void PosixFile::write_at(std::span<const std::byte> bytes, int64_t offset) const {
  while (!bytes.empty()) {
    const size_t length = std::min(bytes.size(), kMaxWriteBytes);
    const int64_t written = write_some(bytes.first(length), offset);
    if (written < 0 && errno == EINTR) continue;
    // A write of something that writes nothing would loop for ever.
    if (written <= 0) {
      throw errno_error(path_, "write at offset " + std::to_string(offset) + " failed",
                        written < 0 ? errno : EIO);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

void PosixFile::read_at(std::span<std::byte> bytes, int64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    const std::string where = "read at offset " + std::to_string(offset);
    if (got < 0) throw errno_error(path_, where + " failed", errno);
    if (got == 0) throw file_error(path_.string(), where, "the file ends there");
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

bool PosixFile::allocate(int64_t bytes) const {
  const int64_t available = free_bytes(folder_of(path_));
  int result = 0;
  do {
    result = ::fallocate(descriptor_, 0, 0, bytes);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  if (errno == ENOSPC) throw no_space(path_, bytes, std::max<int64_t>(available, 0));
  if (errno != EOPNOTSUPP && errno != ENOSYS) throw errno_error(path_, "cannot be enlarged", errno);
  if (available >= 0 && available < bytes) throw no_space(path_, bytes, available);
  if (size() < bytes && ::ftruncate(descriptor_, bytes) != 0) {
    throw errno_error(path_, "cannot be enlarged", errno);
  }
  return false;
}

void PosixFile::truncate(int64_t bytes) const {
  int result = 0;
  do {
    result = ::ftruncate(descriptor_, bytes);
  } while (result != 0 && errno == EINTR);
  if (result != 0) throw errno_error(path_, "cannot be cut off", errno);
}

void PosixFile::sync_data() const {
  if (::fdatasync(descriptor_) != 0) throw errno_error(path_, "fdatasync failed", errno);
}

void PosixFile::sync() const {
  if (::fsync(descriptor_) != 0) throw errno_error(path_, "fsync failed", errno);
}

void PosixFile::close() {
  if (direct_ >= 0) ::close(std::exchange(direct_, -1));
  // Linux releases the descriptor whatever close returns.
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    throw errno_error(path_, "close failed", errno);
  }
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  return folder.empty() ? "." : folder;
}

void require_writable_folder(const std::filesystem::path& file) {
  const std::filesystem::path folder = folder_of(file);
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    throw errno_error(file, "folder " + folder.string(), errno);
  }
  if (!S_ISDIR(info.st_mode)) throw errno_error(file, "folder " + folder.string(), ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw errno_error(file, "folder " + folder.string() + " cannot be written", errno);
  }
}

void require_space(const std::filesystem::path& file, int64_t bytes, int64_t reclaimed) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < static_cast<rlim_t>(bytes)) {
    throw Error(ErrorCode::resource,
                file.string() + ": the process may not write files this large (needed " +
                    format_bytes(bytes) + ", ulimit -f " +
                    format_bytes(static_cast<int64_t>(limit.rlim_cur)) + ")",
                {file.string(), ""});
  }
  const int64_t available = free_bytes(folder_of(file));
  if (available >= 0 && available < bytes - reclaimed) {
    throw no_space(file, bytes, available + reclaimed);
  }
}

int64_t free_disk_bytes(const std::filesystem::path& file) { return free_bytes(folder_of(file)); }

int64_t disk_bytes(const std::filesystem::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 ? int64_t{info.st_blocks} * 512 : 0;
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to, bool replace) {
  int result = -1;
  if (!replace) {
    result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
    if (result != 0 && errno == EEXIST) throw file_error(to.string(), "", "already exists");
    // Not every file system knows the flag.
    replace = result != 0 && (errno == EINVAL || errno == ENOSYS);
  }
  if (replace) result = ::rename(from.c_str(), to.c_str());
  if (result != 0) throw errno_error(to, "cannot take its name", errno);
}

void sync_folder_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = folder_of(file);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw errno_error(folder, "cannot be opened", errno);
  const int result = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  // Some file systems have no fsync for folders; their names are as durable as they can be.
  if (result != 0 && error_number != EINVAL)
    throw errno_error(folder, "fsync failed", error_number);
}

}  // namespace attnscope
