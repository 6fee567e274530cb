#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// A colour bar with its unit above and ticks below; `rect` is as wide as the bar, from the
/// caption's top to the ticks' bottom (kLegendHeight). The caption is cut where it does not fit in
/// `caption_width`.
void draw_legend(const Ui& ui, const ScreenRect& rect, const ColourScale& scale,
                 const std::string& caption, float caption_width);
constexpr float kLegendHeight = 52;

/// ImGui's colour of a pixel.
inline ImU32 to_u32(Rgb c) { return IM_COL32(c.r, c.g, c.b, 255); }

}  // namespace attnscope
