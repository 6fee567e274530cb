#pragma once

#include <string>

#include "io/pictures/page_bands.h"

namespace attnscope {

/// Puts a page as an SVG 1.1: its pixels as one lossless image, its texts as text with the letters
/// they need of their fonts, its lines as lines. `dpi`: pixels an inch. The same page gives the
/// same bytes. Programs that leave fonts within files aside (rsvg, Inkscape) take DejaVu Sans where
/// it is installed, else another, in which texts are as long as in this one. One band, and the
/// packed pixels of some rows are in memory.
void write_svg(const PageBands& page, double dpi, const std::string& title, const PutBytes& put);

}  // namespace attnscope
