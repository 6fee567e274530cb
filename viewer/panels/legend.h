#pragma once

#include <array>
#include <string>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// A colour bar with its unit above and ticks below; `rect` is as wide as the bar, from the
/// caption's top to the ticks' bottom (kLegendHeight). The caption is cut where it does not fit in
/// `caption_width`. In place of a scale of nothing it says `nothing`, why there is none.
void draw_legend(const Ui& ui, const ScreenRect& rect, const ColourScale& scale,
                 const std::string& caption, float caption_width, const std::string& nothing);
constexpr float kLegendHeight = 52;

/// A legend where some values that are seen lie beyond the bar: triangles at its ends, whose tips
/// tell how much.
void draw_legend(const Ui& ui, const ScreenRect& rect, const ColourScale& scale,
                 const ValueHistogram::Beyond& beyond, const std::string& caption,
                 float caption_width, const std::string& nothing);

/// A bar whose ends are no numbers but these words.
void draw_range_legend(const Ui& ui, const ScreenRect& rect, Colormap map,
                       const std::string& caption, float caption_width,
                       const std::array<std::string, 2>& ends);

/// In place of a bar: the caption, and `why` there is no bar (yet).
void draw_no_legend(const Ui& ui, const ScreenRect& rect, const std::string& caption,
                    float caption_width, const std::string& why);

/// Labels of a scale below a line from `x0` to `x1`, of which none touches another; small lines of
/// `tick` pixels lead to them.
void draw_ticks(const Ui& ui, const ColourScale& scale, float x0, float x1, float y, float tick);

/// Entries without a colour of the bar, as far as they are seen.
struct SeenSpecials {
  bool zeros = false;  ///< on a scale that cannot show 0
  bool masked = false;
  bool missing = false;  ///< not in the file
  bool evicted = false;  ///< masked, for a cache had dropped the key
  bool dropped = false;  ///< under the veil of a sparse mask; of the matrix alone
  bool any() const { return zeros || masked || missing || evicted || dropped; }
};
/// Of the map, but for what is dropped.
SeenSpecials seen_specials(const Scene& scene);
/// Diagonal lines in a rectangle, as the map has them where nothing is stored or a key was evicted.
/// One of them meets the lower edge, or what goes on with it, at x = `from`.
void draw_hatch(const Ui& ui, ImDrawList& draw, const ScreenRect& rect, float from);
/// Dots, as the map has them where the mask leaves entries out.
void draw_dots(const Ui& ui, ImDrawList& draw, ImVec2 low, float width, float height);
/// Over blocks that a sparse mask drops.
ImU32 dropped_colour(const Theme& theme);
/// Over a dropped block that loses this share (0 … 1) of the most weight that any block loses.
ImU32 lost_colour(const Theme& theme, double share);
/// Explains the colours of these entries: a line of kSwatchHeight.
void draw_swatches(const Ui& ui, float x, float y, float width, const SeenSpecials& seen);
constexpr float kSwatchHeight = 18;
/// "every key is masked", "every value is 0" …: why nothing can be scaled.
std::string nothing_text(const SeenSpecials& seen);

/// ImGui's colour of a pixel.
inline ImU32 to_u32(Rgb c) { return IM_COL32(c.r, c.g, c.b, 255); }

}  // namespace attnscope
