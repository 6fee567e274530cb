#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "core/base/error.h"

namespace attnscope {

/// Error(file), or Error(resource) where the disk, a quota or a file size limit is used up:
/// "FILE: WHAT: errno's text".
Error errno_error(const std::filesystem::path& file, const std::string& what, int error_number);

/// Which file of the system a name or a descriptor stands for: equal values, the same file.
struct FileIdentity {
  uint64_t device = 0, number = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Of what has this name now, a symbolic link itself and not what it leads to; nothing where
/// nothing has it.
std::optional<FileIdentity> file_identity(const std::filesystem::path& file);

/// A file open for writing through a descriptor of its own. Movable; closed on destruction.
/// write_at may be called from several threads at once, everything else from one.
class PosixFile {
 public:
  enum class Mode : uint8_t {
    create,    ///< must not exist yet (a symbolic link counts as existing)
    existing,  ///< must exist and be a regular file, no link to one; the content stays
    read_only  ///< must exist and lead to a regular file, which is only read
  };

  PosixFile() = default;
  /// Throws Error(file).
  PosixFile(std::filesystem::path path, Mode mode);
  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  const std::filesystem::path& path() const { return path_; }
  /// The file has another name now; messages use it.
  void set_path(std::filesystem::path path) { path_ = std::move(path); }
  bool is_open() const { return descriptor_ >= 0; }
  int64_t size() const;
  /// Throws Error(file).
  FileIdentity identity() const;

  /// From now on write_at hands whole pages (of memory and of the file) to the disk itself: large
  /// files then take no processor's time for copies, and no memory from others, but whoever writes
  /// waits for the disk. False, and nothing changes, where the file system cannot.
  bool bypass_page_cache();
  /// Writes all of `bytes` at `offset`, resuming after signals and short writes. Throws
  /// Error(file or resource) naming the offset.
  void write_at(std::span<const std::byte> bytes, int64_t offset) const;
  /// Fills `bytes` from `offset`; throws Error(file) where the file ends before that.
  void read_at(std::span<std::byte> bytes, int64_t offset) const;
  /// Reserves disk blocks for the first `bytes` bytes and makes the file at least that long; new
  /// bytes read as zeros. Where the file system cannot reserve, the file is only made that long,
  /// after a look at the free space, and the result is false. Throws Error(resource) naming the
  /// bytes needed and free.
  bool allocate(int64_t bytes) const;
  /// Cuts the file off after `bytes` bytes. Throws Error(file).
  void truncate(int64_t bytes) const;
  /// fdatasync; throws Error(file).
  void sync_data() const;
  /// fsync; throws Error(file).
  void sync() const;
  /// Throws Error(file) when the system reports a late write error.
  void close();

 private:
  int64_t write_some(std::span<const std::byte> bytes, int64_t offset) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  int direct_ = -1;  ///< the same file, past the page cache
};

/// The folder a file stands in: "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& file);
/// Throws Error(file) naming `file` when its folder is missing, no folder, or not writable.
void require_writable_folder(const std::filesystem::path& file);
/// Throws Error(resource) naming the bytes needed and available when the file system of `file`, or
/// the process's limit on file sizes, has no room for `bytes` more. `reclaimed` bytes will be freed
/// before.
void require_space(const std::filesystem::path& file, int64_t bytes, int64_t reclaimed = 0);
/// Bytes that may still be written where `file` is to stand; −1 where the system cannot say.
int64_t free_disk_bytes(const std::filesystem::path& file);
/// Bytes of disk that a file takes; 0 where there is none.
int64_t disk_bytes(const std::filesystem::path& file);
/// Renames; with `replace` false an existing target is an Error(file).
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to, bool replace);
/// fsync of the folder that holds `file`, so that its name survives a power loss; throws
/// Error(file).
void sync_folder_of(const std::filesystem::path& file);

}  // namespace attnscope
