#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "io/pictures/canvas.h"

namespace attnscope {

using TakeBand = std::function<void(const Canvas& band)>;

/// A page that is drawn a band at a time, from its top to its bottom, and nowhere is as a whole.
struct PageBands {
  int width = 0, height = 0;
  /// Gives bands as wide as the page, together as high. May be called again.
  std::function<void(const TakeBand& take)> draw;
};

/// A canvas as a page of one band. Borrows it.
PageBands page_of(const Canvas& canvas);

/// Draws the page, gives its rows of pixels to `put_row`, and returns the texts and lines of its
/// bands as they stand on the page.
std::vector<CanvasMark> draw_bands(const PageBands& page,
                                   const std::function<void(std::span<const Rgb> row)>& put_row);

/// A piece of a file, of which one follows the other.
using PutBytes = std::function<void(std::span<const std::byte> bytes)>;

}  // namespace attnscope
