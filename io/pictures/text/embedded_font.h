#pragma once

#include <span>

namespace attnscope {

/// The TrueType font that pictures are written with, part of the program: DejaVu Sans cut to Latin,
/// Greek, Cyrillic, punctuation and symbols (io/pictures/text/data, made by scripts/embed-font).
std::span<const unsigned char> embedded_font();

}  // namespace attnscope
