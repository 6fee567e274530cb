#include "viewer/panels/fonts.h"

#include <imgui.h>
#ifndef __EMSCRIPTEN__
#include <imgui_freetype.h>
#endif

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "io/pictures/text/embedded_font.h"
#include "io/pictures/text/system_fonts.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// The letters that the window prints: Latin, Greek, punctuation, arrows, operators, shapes.
constexpr std::array<ImWchar, 15> kGlyphs{0x20,   0x17f,  0x370,  0x3ff,  0x2010,
                                          0x205e, 0x2070, 0x209f, 0x2190, 0x21ff,
                                          0x2200, 0x22ff, 0x25a0, 0x25ff, 0};

/// ImGui's ranges: first and last letter of each, and 0 at the end.
using Ranges = std::vector<ImWchar>;

/// ImGui's sizes are those of a line, which is taller than the em by what the face says.
struct Face {
  std::optional<fs::path> file;  ///< none: the embedded font
  float line_per_em = 1.2f;
};

/// A substitute for letters that a face lacks: a font in memory, and which of its letters.
struct Substitute {
  std::span<const unsigned char> font;
  int face = 0;
  float line_per_em = 1.2f;
  Ranges ranges;
};

float line_per_em(const FontFace& face) {
  return static_cast<float>(face.line_height()) / static_cast<float>(face.units_per_em());
}

bool fits_imgui(char32_t letter) { return letter <= IM_UNICODE_CODEPOINT_MAX; }

/// The usual glyphs and these letters.
Ranges ranges_with(const std::u32string& letters) {
  Ranges ranges(kGlyphs.begin(), kGlyphs.end() - 1);
  for (const char32_t letter : letters) {
    if (fits_imgui(letter)) ranges.insert(ranges.end(), 2, static_cast<ImWchar>(letter));
  }
  ranges.push_back(0);
  return ranges;
}

/// The embedded font, and the installed ones for letters that it lacks.
std::vector<Substitute> substitutes_for(const std::u32string& letters) {
  const FontFace embedded = FontFace::of(embedded_font(), 0).value();
  std::map<const SystemFont*, Ranges> elsewhere;
  for (const char32_t letter : letters) {
    if (!fits_imgui(letter) || embedded.glyph(letter) != 0) continue;
    const SystemFont* font = SystemFonts::installed().with_letter(letter);
    if (font == nullptr) continue;
    Ranges& ranges = elsewhere[font];
    ranges.insert(ranges.end(), 2, static_cast<ImWchar>(letter));
  }
  std::vector<Substitute> found{{embedded_font(), 0, line_per_em(embedded), ranges_with(letters)}};
  for (auto& [font, ranges] : elsewhere) {
    ranges.push_back(0);
    found.push_back(
        {font->bytes, font->face->number(), line_per_em(*font->face), std::move(ranges)});
  }
  return found;
}

ImFontConfig settings() {
  ImFontConfig config;
  config.PixelSnapH = true;
#ifdef __EMSCRIPTEN__
  // ImGui's own drawing of letters knows no hints; finer steps across would blur the stems.
  config.OversampleH = config.OversampleV = 1;
#else
  config.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
#endif
  return config;
}

/// Adds a face, and the substitutes for what it lacks: ImGui takes a letter from the first that has
/// it. Ranges are read when the atlas is built.
ImFont* add(const Face& face, float em, const Ranges& ranges,
            const std::vector<Substitute>& substitutes) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  ImFont* font = nullptr;
  if (face.file) {
    const ImFontConfig config = settings();
    font = atlas.AddFontFromFileTTF(face.file->c_str(), std::round(em * face.line_per_em), &config,
                                    ranges.data());
  }
  for (const Substitute& substitute : substitutes) {
    ImFontConfig config = settings();
    config.MergeMode = font != nullptr;
    config.FontNo = substitute.face;
    // ImGui copies the bytes.
    config.FontDataOwnedByAtlas = false;
    ImFont* added = atlas.AddFontFromMemoryTTF(const_cast<unsigned char*>(substitute.font.data()),
                                               static_cast<int>(substitute.font.size()),
                                               std::round(em * substitute.line_per_em), &config,
                                               substitute.ranges.data());
    if (font == nullptr) font = added;
  }
  return font;
}

}  // namespace

Fonts load_fonts(float scale, const std::u32string& letters) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
#ifndef __EMSCRIPTEN__
  atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
#endif
  const SystemFonts& installed = SystemFonts::installed();
  const Face text{installed.find({"Inter-Regular.otf", "Inter-Regular.ttf", "Inter.ttc",
                                  "InterVariable.ttf", "Roboto-Regular.ttf", "DejaVuSans.ttf"}),
                  1.21f};
  const Face title{installed.find({"Inter-SemiBold.otf", "Inter-SemiBold.ttf", "Inter-Medium.otf",
                                   "Roboto-Medium.ttf", "DejaVuSans-Bold.ttf"}),
                   1.21f};
  const Face mono{installed.find({"JetBrainsMono-Regular.ttf", "DejaVuSansMono.ttf",
                                  "LiberationMono-Regular.ttf", "RobotoMono-Regular.ttf"}),
                  1.165f};
  const Ranges ranges = ranges_with(letters);
  const std::vector<Substitute> substitutes = substitutes_for(letters);
  Fonts fonts;
  fonts.body = add(text, 15 * scale, ranges, substitutes);  // the first one is ImGui's default
  fonts.secondary = add(text, 13 * scale, ranges, substitutes);
  fonts.title = add(title.file ? title : text, 18 * scale, ranges, substitutes);
  fonts.mono = add(mono, 13 * scale, ranges, substitutes);
  atlas.Build();
  // Copies of font files, each as often as it was added.
  atlas.ClearInputData();
  return fonts;
}

}  // namespace attnscope
