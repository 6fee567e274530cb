#include "io/capture/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "io/files/beneath.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// The cache's folder, and not what a link of its name leads to; not open, with errno, where it
/// cannot be.
Descriptor open_folder(const fs::path& folder) {
  const fs::path name = folder.has_filename() ? folder : folder.parent_path();
  const Descriptor parent(::open(folder_of(name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent.is_open()) return Descriptor();
  return open_beneath(parent, name.filename(), O_PATH | O_DIRECTORY);
}

/// Reads `bytes` from `offset` on; false where the file does not give all of them.
bool read_all(const Descriptor& file, std::span<std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file.number(), bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return true;
}

/// Throws errno_error() naming `path`.
void write_all(const Descriptor& file, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw errno_error(path, "cannot be written", written < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

}  // namespace

std::optional<std::vector<std::byte>> load_cache_file(const fs::path& folder,
                                                      const std::string& name, int64_t most) {
  const Descriptor place = open_folder(folder);
  if (!place.is_open()) return std::nullopt;
  const Descriptor file = open_beneath(place, name, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!file.is_open() || fstat(file.number(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_uid != geteuid() || info.st_size > most) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  if (!read_all(file, bytes, 0)) return std::nullopt;
  return bytes;
}

void store_cache_file(const fs::path& folder, const std::string& name,
                      std::span<const std::byte> bytes) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw errno_error(folder, "cannot be created", failed.value());
  const Descriptor place = open_folder(folder);
  if (!place.is_open() && errno == ELOOP) {
    throw file_error(folder.string(), "", "is a link, through which nothing is kept");
  }
  if (!place.is_open()) throw errno_error(folder, "cannot be opened", errno);
  // Other processes may write the same file at the same time.
  const std::string part = name + "." + std::to_string(getpid()) + ".part";
  ::unlinkat(place.number(), part.c_str(), 0);
  const Descriptor file = open_beneath(place, part, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!file.is_open()) throw errno_error(folder / part, "cannot be created", errno);
  try {
    write_all(file, bytes, folder / part);
    if (::renameat(place.number(), part.c_str(), place.number(), name.c_str()) != 0) {
      throw errno_error(folder / name, "cannot take its name", errno);
    }
  } catch (...) {
    ::unlinkat(place.number(), part.c_str(), 0);
    throw;
  }
}

std::optional<std::string> CacheFolders::store(const std::string& name,
                                               std::span<const std::byte> bytes) {
  std::string problems;
  for (; first_writable_ < folders_.size(); ++first_writable_) {
    try {
      store_cache_file(folders_[first_writable_], name, bytes);
      return std::nullopt;
    } catch (const Error& e) {
      problems += (problems.empty() ? "" : "; ") + std::string(e.what());
    }
  }
  if (problems.empty()) return std::nullopt;
  return problems;
}

}  // namespace attnscope
