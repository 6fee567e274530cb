#include "viewer/panels/fonts.h"

#include <imgui.h>
#include <imgui_freetype.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// Font files by name, of every folder that fonts usually are in.
std::map<std::string, fs::path> installed_fonts() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("HOME")) {
    folders.push_back(fs::path(home) / ".local/share/fonts");
    folders.push_back(fs::path(home) / ".fonts");
  }
  folders.emplace_back("/usr/local/share/fonts");
  folders.emplace_back("/usr/share/fonts");
  std::map<std::string, fs::path> found;
  for (const fs::path& folder : folders) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(folder, options, error), end; !error && at != end;
         at.increment(error)) {
      found.try_emplace(at->path().filename().string(), at->path());
    }
  }
  return found;
}

/// What the window prints: Latin, Greek, punctuation, arrows, operators, shapes.
constexpr std::array<ImWchar, 15> kGlyphs{0x20,   0x17f,  0x370,  0x3ff,  0x2010,
                                          0x205e, 0x2070, 0x209f, 0x2190, 0x21ff,
                                          0x2200, 0x22ff, 0x25a0, 0x25ff, 0};

/// ImGui's sizes are those of a line, which is taller than the em by what the face says.
struct Face {
  std::optional<fs::path> file;
  float line_per_em = 1.2f;
};

ImFont* add(const Face& face, float em) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  ImFontConfig config;
  config.PixelSnapH = true;
  config.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
  if (face.file) {
    if (ImFont* font = atlas.AddFontFromFileTTF(
            face.file->c_str(), std::round(em * face.line_per_em), &config, kGlyphs.data())) {
      return font;
    }
  }
  ImFontConfig fallback;
  fallback.SizePixels = std::round(em);
  return atlas.AddFontDefault(&fallback);
}

}  // namespace

std::optional<fs::path> find_font(const std::vector<std::string>& names) {
  static const std::map<std::string, fs::path> installed = installed_fonts();
  for (const std::string& name : names) {
    const auto found = installed.find(name);
    if (found != installed.end()) return found->second;
  }
  return std::nullopt;
}

Fonts load_fonts(float scale) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
  atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
  const Face text{find_font({"Inter-Regular.otf", "Inter-Regular.ttf", "Inter.ttc",
                             "InterVariable.ttf", "Roboto-Regular.ttf", "DejaVuSans.ttf"}),
                  1.21f};
  const Face title{find_font({"Inter-SemiBold.otf", "Inter-SemiBold.ttf", "Inter-Medium.otf",
                              "Roboto-Medium.ttf", "DejaVuSans-Bold.ttf"}),
                   1.21f};
  const Face mono{find_font({"JetBrainsMono-Regular.ttf", "DejaVuSansMono.ttf",
                             "LiberationMono-Regular.ttf", "RobotoMono-Regular.ttf"}),
                  1.165f};
  Fonts fonts;
  fonts.body = add(text, 15 * scale);  // the first one is ImGui's default
  fonts.secondary = add(text, 13 * scale);
  fonts.title = add(title.file ? title : text, 18 * scale);
  fonts.mono = add(mono, 13 * scale);
  return fonts;
}

}  // namespace attnscope
