#pragma once

#include <imgui.h>

#include "viewer/view/view_state.h"

namespace attnscope {

/// The colours of the window by what they mean. The data has the colours, the program is grey;
/// query, key and side B look the same wherever they occur.
struct Theme {
  ImU32 window, pane, border;
  ImU32 text, secondary;
  ImU32 raised, hovered, pressed;  ///< controls: at rest, under the mouse, held or chosen
  ImU32 query, key, side_b;
  /// Of query and key, and of anything else, on data: each beside `mark_edge` is seen on every
  /// colour. The data have the same colours in both themes, and so have these.
  ImU32 query_mark, key_mark, plain_mark, mark_edge;
  ImU32 problem;
  ImU32 nothing;  ///< of cells that the scale cannot show: 0 on a log scale
  ImU32 hatch;    ///< lines in cells that have no value
  ImU32 masked;   ///< of cells that the mask leaves out, and the dots in them
  ImU32 masked_dot;
  ImU32 grid;         ///< lines over data: between frames
  ImU32 grid_shadow;  ///< under them, so that they show on bright data too
  ImU32 veil;         ///< over what a dialog hides
};

const Theme& theme_of(ViewTheme theme);
/// Lays the theme over ImGui's style; `scale` is the display's.
void apply_theme(const Theme& theme, float scale);
ImVec4 to_vec4(ImU32 colour);
/// `colour` with another opacity, 0 … 1.
ImU32 faded(ImU32 colour, float opacity);
/// Dark text on bright grounds, bright text on dark ones.
ImU32 ink_on(ImU32 ground);

}  // namespace attnscope
