#pragma once

#include <span>

#include "viewer/panels/widgets.h"

namespace attnscope {

// Lines and frames over data, which may have any colour: a core of a pixel with a dark edge of a
// pixel on either side, so that one of the two is seen everywhere.

enum class MarkStroke : uint8_t { solid, dashed };

/// Lines across all of `area`: columns of pixels at these x, or rows at these y.
void mark_columns(const Ui& ui, const ScreenRect& area, std::span<const float> at, ImU32 colour,
                  MarkStroke stroke);
void mark_rows(const Ui& ui, const ScreenRect& area, std::span<const float> at, ImU32 colour,
               MarkStroke stroke);
/// Frames whose cores are the outermost `thick` pixels within the rectangles; their edges lie on
/// both sides of that.
void mark_frames(const Ui& ui, std::span<const ScreenRect> rects, ImU32 colour, float thick = 1);

}  // namespace attnscope
