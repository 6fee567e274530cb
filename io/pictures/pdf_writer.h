#pragma once

#include <string>

#include "io/pictures/canvas.h"

namespace attnscope {

/// A page as a PDF 1.5 of one page (ISO 32000-1): its pixels as one lossless image, its texts as
/// text with the letters they need of their fonts, its lines as lines. `dpi`: pixels an inch. One
/// with a side of more than 14400 points is a PDF 1.6 in larger units (UserUnit). The same page
/// gives the same bytes: no dates, no names of programs' versions.
std::string pdf_of(const Canvas& page, double dpi, const std::string& title);

}  // namespace attnscope
