#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "io/files/staged_file.h"
#include "io/pictures/colormap.h"

namespace attnscope {

/// Writes an 8-bit RGB PNG row by row, so that the picture never is in memory. Not thread-safe.
class PngWriter {
 public:
  using Put = std::function<void(std::span<const std::byte>)>;
  /// Borrows `file`. With `dpi` the file says how many pixels an inch has. Throws Error(file).
  PngWriter(StagedFile& file, int width, int height, double dpi = 0);
  /// Gives the file's bytes to `put`, in order; `name` is how messages call it.
  PngWriter(Put put, const std::filesystem::path& name, int width, int height, double dpi = 0);
  ~PngWriter();

  /// `width` pixels; called `height` times.
  void write_row(std::span<const Rgb> row);
  /// Writes what comes after the last row.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attnscope
