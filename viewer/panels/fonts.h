#pragma once

#include <string>

struct ImFont;

namespace attnscope {

/// The faces of the window; sizes are those of the em, times the display's scale. Owned by ImGui's
/// font atlas.
struct Fonts {
  ImFont* secondary = nullptr;  ///< 13
  ImFont* body = nullptr;       ///< 15
  ImFont* title = nullptr;      ///< 18
  ImFont* mono = nullptr;       ///< 13, digits of one width
};

/// Fills ImGui's atlas, between two frames: with Inter (or Roboto, or DejaVu Sans) and a monospaced
/// face where they are installed, with the pictures' embedded font for what these lack, and for
/// `letters` beside the usual ones from whichever installed font has them (SystemFonts). Letters
/// that none has, and those beyond the 16 bits of ImGui's letters, are shown as ImGui's "?".
Fonts load_fonts(float scale, const std::u32string& letters);

}  // namespace attnscope
