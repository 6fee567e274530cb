#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

/// The first of the file names that exists in the system's and the user's font folders.
std::optional<std::filesystem::path> find_font(const std::vector<std::string>& names);

/// Fills ImGui's atlas with Inter (or Roboto, or DejaVu Sans) and a monospaced face, or with
/// ImGui's own font where the system has none of them.
Fonts load_fonts(float scale);

}  // namespace attnscope
