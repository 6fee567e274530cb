#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/pictures/canvas.h"
#include "io/pictures/picture_style.h"

namespace attnscope {

/// The text above a picture that explains it: a title, and quiet lines below it. Lines too long for
/// a page are broken at their " · "; pieces that are still too long end in "…".
struct PictureText {
  std::string title;
  std::vector<std::string> lines;
};

/// Pixels from the top of the page to what stands below the header.
int header_height(const PictureText& text);
/// Pixels that the header's longest line takes.
int header_width(const PictureText& text);
/// Draws it into the upper left corner of the page, within the margin.
void draw_header(Canvas& canvas, const PictureText& text);

/// The text, or as much of its beginning as takes `width` pixels with a "…" behind it; capitals of
/// `cap_height` pixels.
std::string elided(const std::string& text, int width, int cap_height);

/// Writes a PNG through PATH.part; an existing file is replaced with `force` only. Throws
/// Error(file).
void write_canvas_png(const Canvas& canvas, const std::filesystem::path& path, bool force);

}  // namespace attnscope
