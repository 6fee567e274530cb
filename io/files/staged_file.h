#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "io/files/output_file.h"

namespace attnscope {

/// A file that appears under its name only when it is complete, written from the front or by a
/// library that creates PATH.part: an OutputFile for small outputs. Destroyed before commit(),
/// PATH.part is removed and PATH is as it was. Not thread-safe.
class StagedFile {
 public:
  /// Takes PATH.lock; throws what OutputFile's constructor throws.
  StagedFile(std::filesystem::path path, bool force) : file_(std::move(path), {.force = force}) {}

  const std::filesystem::path& path() const { return file_.out(); }
  const std::filesystem::path& part_path() const { return file_.part_path(); }
  /// Creates PATH.part at its first call and appends to it; not for files that a library creates
  /// there.
  void append(std::span<const std::byte> bytes) {
    if (!file_.is_open()) file_.create_part();
    file_.write_at(bytes, size_);
    size_ += static_cast<int64_t>(bytes.size());
  }
  /// Makes what was appended so far durable.
  void sync() { file_.sync_data(); }
  /// Makes the file durable and renames it to PATH.
  void commit() { file_.commit(); }

 private:
  OutputFile file_;
  int64_t size_ = 0;
};

}  // namespace attnscope
