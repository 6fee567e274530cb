#pragma once

#include <string>

#include "io/pictures/canvas.h"

namespace attnscope {

/// A page as an SVG 1.1: its pixels as one lossless image, its texts as text with the letters they
/// need of their fonts, its lines as lines. `dpi`: pixels an inch. The same page gives the same
/// bytes. Programs that leave fonts within files aside (rsvg, Inkscape) take DejaVu Sans where it
/// is installed, else another, in which texts are as long as in this one.
std::string svg_of(const Canvas& page, double dpi, const std::string& title);

}  // namespace attnscope
