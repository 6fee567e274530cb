#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "io/files/file_lock.h"

namespace attnscope {

/// A folder that appears under its name only when it is complete: files are created in
/// part_path(), and commit() gives it its name. Destroyed before that, what was written is removed
/// and OUT is as it was. A killed run leaves OUT.part. Not thread-safe.
class CaptureFolder {
 public:
  /// Creates OUT.part, empty. Throws Error(file) when OUT or OUT.part exists without `force`; with
  /// it, when one of them is no folder or holds anything but a capture's files (they are deleted
  /// to make room); when another run writes OUT; when the folder that holds it cannot be written.
  CaptureFolder(const std::filesystem::path& out, bool force);
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;
  ~CaptureFolder();

  const std::filesystem::path& part_path() const { return part_; }
  /// Removes what is replaced and renames OUT.part to OUT, durably.
  void commit();

  /// The constructor's checks; creates nothing. Throws Error(file) as well where OUT or OUT.part
  /// is one of `inputs` (files that are read, and folders of captures), holds one, or would stand
  /// in one of the folders.
  static void check_target(const std::filesystem::path& out, bool force,
                           std::span<const std::filesystem::path> inputs = {});

 private:
  std::filesystem::path out_;
  std::filesystem::path part_;
  bool committed_ = false;
  FileLock lock_;
};

/// True where the name asks for one call's file instead of a folder: it ends in .safetensors.
bool is_single_capture_file(const std::filesystem::path& out);

/// A capture that is to be written.
struct CaptureTarget {
  bool force = false;
  int64_t bytes = 0;  ///< of its tensors
  /// As of OutputFileOptions. Borrowed for the call.
  std::span<const std::filesystem::path> inputs{};
};
/// Throws what a capture of that name would before it is written: Error(file) as an OutputFile and
/// a CaptureFolder do, Error(resource) where the disk has no room. Creates nothing.
void check_capture_target(const std::filesystem::path& out, const CaptureTarget& target);

}  // namespace attnscope
