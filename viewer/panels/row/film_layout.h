#pragma once

#include <cstdint>

#include "viewer/panels/label_registry.h"

namespace attnscope {

/// Where the frames of a filmstrip stand: as large as they go, in as many lines as that takes. A
/// value.
struct FilmLayout {
  int64_t frames = 0, height = 0, width = 0;  ///< cells
  int64_t per_line = 1;
  float cell = 0;   ///< pixels of a cell's width
  float tall = 1;   ///< a cell's height over its width
  float label = 0;  ///< pixels above a frame
  float gap = 0;    ///< between frames
  float x0 = 0, y0 = 0;

  /// Fits frames of height × width cells into `area`; `whole`: a cell's width is a whole number of
  /// pixels where it has more than four.
  static FilmLayout fit(const ScreenRect& area, int64_t frames, int64_t height, int64_t width,
                        float label, float gap, float tall = 1, bool whole = true);
  /// Of a frame's cells, without its label.
  ScreenRect frame(int64_t t) const;
  ScreenRect cell_rect(int64_t t, int64_t y, int64_t x) const;
  /// Under the last line.
  float bottom() const;
};

}  // namespace attnscope
