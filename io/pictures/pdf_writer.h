#pragma once

#include <string>

#include "io/pictures/page_bands.h"

namespace attnscope {

/// Puts a page as a PDF 1.5 of one page (ISO 32000-1): its pixels as one lossless image, its texts
/// as text with the letters they need of their fonts, its lines as lines. `dpi`: pixels an inch.
/// One with a side of more than 14400 points is a PDF 1.6 in larger units (UserUnit). The same page
/// gives the same bytes: no dates, no names of programs' versions. Only one band of its pixels is
/// in memory.
void write_pdf(const PageBands& page, double dpi, const std::string& title, const PutBytes& put);

}  // namespace attnscope
