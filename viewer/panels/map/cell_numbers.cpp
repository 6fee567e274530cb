#include "viewer/panels/map/cell_numbers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

constexpr float kLeastCell = 24;

/// "0.05" → ".05", "-0.5" → "-.5", "1e-05" → "1e-5".
std::string terse(std::string text) {
  const size_t zero = text.find("0.");
  if (zero == 0 || (zero == 1 && text[0] == '-')) text.erase(zero, 1);
  const size_t e = text.find('e');
  if (e != std::string::npos) {
    size_t digit = e + 1;
    if (text[digit] == '+') {
      text.erase(digit, 1);
    } else if (text[digit] == '-') {
      ++digit;
    }
    while (digit + 1 < text.size() && text[digit] == '0') text.erase(digit, 1);
  }
  return text;
}

/// Dark text on bright cells, bright text on dark ones.
ImU32 contrasting(Rgb c) {
  const double luminance = 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b;
  return luminance > 120 ? IM_COL32(0, 0, 0, 220) : IM_COL32(255, 255, 255, 220);
}

}  // namespace

std::string number_within(double value, int characters) {
  if (value == 0) return characters >= 1 ? "0" : "";
  for (int digits = 3; digits >= 1; --digits) {
    for (const std::string& text : {terse(fmt::format("{:.{}g}", value, digits)),
                                    terse(fmt::format("{:.{}e}", value, digits - 1))}) {
      if (static_cast<int>(text.size()) <= characters) return text;
    }
  }
  // At least its power of ten.
  const std::string power = fmt::format("e{:.0f}", std::floor(std::log10(std::abs(value))));
  return value > 0 && static_cast<int>(power.size()) <= characters ? power : "";
}

void draw_cell_numbers(const Ui& ui, const Scene& scene, const ViewState& state,
                       const ColourScale& scale, const ViewTransform& view, int level) {
  const float cell_width = static_cast<float>(1 / view.keys_per_pixel());
  const float cell_height = static_cast<float>(1 / view.queries_per_pixel());
  if (level != 0 || scene.call.block > 1 || cell_width < ui.px(kLeastCell) ||
      cell_height < ui.px(kLeastCell))
    return;
  ImFont* const font = ui.fonts.mono;
  const int characters = static_cast<int>((cell_width - ui.px(2)) / text_size(font, "0").x);
  const MapRect& r = view.rect;
  const auto first = [](double at) { return std::max<int64_t>(0, static_cast<int64_t>(at)); };
  const int64_t last_query = std::min(scene.geometry.rows, static_cast<int64_t>(std::ceil(r.q1)));
  const int64_t last_key = std::min(scene.geometry.cols, static_cast<int64_t>(std::ceil(r.k1)));
  std::shared_ptr<const MapTile> tile;
  TileId id = tile_of(state, 0, -1, -1);
  for (int64_t q = first(r.q0); q < last_query; ++q) {
    for (int64_t k = first(r.k0); k < last_key; ++k) {
      if (q / kTileSide != id.row || k / kTileSide != id.col) {
        id.row = q / kTileSide;
        id.col = k / kTileSide;
        tile = scene.tiles.find(id);
      }
      if (!tile) continue;
      const int64_t place = (q % kTileSide) * tile->cols + k % kTileSide;
      const double value =
          static_cast<double>(tile->max[static_cast<size_t>(place)]) * scene.factor;
      const std::string text =
          std::isfinite(value) ? number_within(value, characters) : std::string("\u00b7");
      const float x = (view.x(static_cast<double>(k)) + view.x(static_cast<double>(k + 1))) / 2;
      const float y = (view.y(static_cast<double>(q)) + view.y(static_cast<double>(q + 1))) / 2;
      put_text(ui, font, x, y - font->FontSize / 2, contrasting(scale.colour(value)), text,
               Align::centre);
    }
  }
}

}  // namespace attnscope
