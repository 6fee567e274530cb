#pragma once

#include <filesystem>

#include "io/files/input_file.h"
#include "io/pictures/canvas.h"
#include "io/pictures/grey_image.h"

namespace attnscope {

/// Sides and pixels of the largest picture that is read.
constexpr int kMaxPngSide = 8192;
constexpr int64_t kMaxPngPixels = 16 << 20;

/// Reads a PNG of any colour type and depth as 8-bit grey (Rec. 709 luma of the stored values,
/// alpha ignored). Memory: a byte a pixel and what libpng takes for rows. Throws Error(file),
/// naming the file and what libpng says, when it is no PNG, damaged, or larger than the limits.
GreyImage read_png_grey(const InputFile& file);
/// Reads the PNG of this name, which may be a link.
GreyImage read_png_grey(const std::filesystem::path& path);
/// As read_png_grey(), but in colour, 8 bits each; three bytes a pixel.
Canvas read_png_colour(const std::filesystem::path& path);

}  // namespace attnscope
