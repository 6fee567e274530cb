#pragma once

#include <array>
#include <cstdint>

namespace attnscope {

/// The 256 colours of a published colour map from its dark (turbo: blue) end, sRGB as 0xRRGGBB.
using ColormapTable = std::array<uint32_t, 256>;

extern const ColormapTable kViridis, kCividis, kMagma, kInferno, kTurbo;

}  // namespace attnscope
