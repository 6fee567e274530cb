#include "viewer/panels/map/cell_numbers.h"

#include <algorithm>
#include <cmath>

#include "viewer/panels/legend.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// Of a cell, down; across it is the digits that need room.
constexpr float kLeastHeight = 24;

}  // namespace

int room_in_cell(const Ui& ui, float width) {
  return static_cast<int>((width - ui.px(2)) / text_size(ui.fonts.mono, "0").x);
}

CellNumbers CellNumbers::of(const Ui& ui, const Scene& scene, const ViewState& state,
                            const ColourScale& scale, const ViewTransform& view, int level) {
  CellNumbers numbers;
  const float width = static_cast<float>(1 / view.keys_per_pixel());
  const float height = static_cast<float>(1 / view.queries_per_pixel());
  if (level != 0 || scene.call.block > 1 || height < ui.px(kLeastHeight)) return numbers;
  numbers.characters_ = room_in_cell(ui, width);
  // Of fewer characters no notation makes two digits.
  if (cell_notation({}, numbers.characters_).characters == 0) return {};
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
        tile = find(scene.tiles, id);
      }
      if (!tile) continue;
      const int64_t place = (q % kTileSide) * tile->cols + k % kTileSide;
      const double value =
          static_cast<double>(tile->max[static_cast<size_t>(place)]) * scene.factor;
      numbers.values_.push_back(value);
      numbers.middles_.push_back(
          {(view.x(static_cast<double>(k)) + view.x(static_cast<double>(k + 1))) / 2,
           (view.y(static_cast<double>(q)) + view.y(static_cast<double>(q + 1))) / 2});
      numbers.inks_.push_back(ink_on(to_u32(scale.colour(value))));
    }
  }
  return numbers;
}

CellNotation CellNumbers::notation_with(const CellNumbers& other) const {
  if (other.values_.empty()) return cell_notation(values_, characters_);
  if (values_.empty()) return cell_notation(other.values_, other.characters_);
  std::vector<double> all = values_;
  all.insert(all.end(), other.values_.begin(), other.values_.end());
  return cell_notation(all, std::min(characters_, other.characters_));
}

void CellNumbers::draw(const Ui& ui, const CellNotation& notation) const {
  ImFont* const font = ui.fonts.mono;
  for (size_t i = 0; i < values_.size(); ++i) {
    const std::string text = cell_text(values_[i], notation);
    if (text.empty()) continue;
    put_text(ui, font, middles_[i].x, middles_[i].y - font->FontSize / 2, inks_[i], text,
             Align::centre);
  }
}

}  // namespace attnscope
