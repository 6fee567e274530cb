#pragma once

#include <memory>
#include <span>

#include "io/files/staged_file.h"
#include "io/pictures/colormap.h"

namespace attnscope {

/// Writes an 8-bit RGB PNG row by row, so that the picture never is in memory. Not thread-safe.
class PngWriter {
 public:
  /// Borrows `file`. Throws Error(file).
  PngWriter(StagedFile& file, int width, int height);
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
