#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "io/file_lock.h"
#include "io/posix_file.h"

namespace attnscope {

/// The life of an export on disk: OUT.lock is held throughout, everything is written to OUT.part,
/// and commit() gives it its name. Destroyed before that, OUT.part is removed and OUT is as it was.
///
/// Order of calls: constructor, (somebody creates part_path() and closes it), open_part(),
/// write_at() …, sync_data(), commit(). write_at is thread-safe; the rest is not.
class ExportFile {
 public:
  /// The checks of the constructor; creates nothing. Throws Error(file) when OUT or OUT.part exists
  /// without `force`, or with it is anything but a regular file; when OUT, OUT.part or OUT.lock is
  /// one of `inputs`; when another run writes them; when the folder is missing or cannot be
  /// written. Error(resource) when the disk has no room for `bytes`.
  static void check_target(const std::filesystem::path& out, bool force, int64_t bytes,
                           std::span<const std::filesystem::path> inputs = {});

  /// Takes the lock; with `force` removes an old OUT.part.
  ExportFile(std::filesystem::path out, bool force, bool sync, int64_t bytes,
             std::span<const std::filesystem::path> inputs = {});
  ExportFile(const ExportFile&) = delete;
  ExportFile& operator=(const ExportFile&) = delete;
  ~ExportFile();

  const std::filesystem::path& out() const { return out_; }
  const std::filesystem::path& part_path() const { return part_; }

  /// Opens OUT.part for write_at and reserves `bytes` bytes of disk for it. Throws Error(resource)
  /// when the disk has too few.
  void open_part(int64_t bytes);
  /// The same for a file that nobody has created: creates it, empty.
  void create_part();
  bool is_open() const { return data_.is_open(); }
  void write_at(std::span<const std::byte> bytes, int64_t offset) const {
    data_.write_at(bytes, offset);
  }
  /// What was written so far reaches the disk before anything that is written later; nothing
  /// without `sync`.
  void sync_data() const;
  /// Makes OUT.part durable (with `sync`) and renames it to OUT.
  void commit();

 private:
  std::filesystem::path out_;
  std::filesystem::path part_;
  bool force_ = false;
  bool sync_ = true;
  bool committed_ = false;
  std::optional<FileLock> lock_;
  PosixFile data_;
};

}  // namespace attnscope
