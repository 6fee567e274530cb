#include "viewer/panels/map/mini_map.h"

#include <algorithm>
#include <cmath>

#include "viewer/panels/widgets.h"
#include "viewer/view/comparison.h"
#include "viewer/view/value_range.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {

ColourScale MiniMap::scale_of(const ViewState& shown, const MapGeometry& geometry,
                              const std::shared_ptr<const MapTile>& tile, Side& side) {
  if (side.tile != tile || side.pool != shown.pool) {
    side.counts =
        ValueHistogram::of({&tile, 1}, fit_rect(geometry.rows, geometry.cols), shown.pool);
    side.tile = tile;
    side.pool = shown.pool;
  }
  ViewState state = shown;
  state.range = {};
  if (state.other) state.other->range = {};
  return shown_scale(state, side.counts, geometry.cols);
}

void MiniMap::draw_side(const Ui& ui, const Scene& scene, const ViewState& shown,
                        const ScreenRect& whole, const ScreenRect& clip, Side& side) {
  const TileId top = tile_of(shown, scene.geometry.top_level, 0, 0);
  side.layer.quads.clear();
  if (!textures_->has(top)) return;
  const TileTextures::Drawn drawn = textures_->use(top);
  side.layer.quads.push_back({whole.x0, whole.y0, whole.x1, whole.y1, 0, 0,
                              static_cast<float>(drawn.tile->cols),
                              static_cast<float>(drawn.tile->rows), drawn.slot});
  const ColourScale scale = scale_of(shown, scene.geometry, drawn.tile, side);
  side.layer.add_tiles(textures_->pool(), painter_colours(shown, scale, scene.factor, ui.theme),
                       scale.map(), clip);
}

bool MiniMap::draw(const Ui& ui, const ScreenRect& area, const Scene& scene,
                   PanelRequests& requests) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const MapGeometry& g = scene.geometry;
  // The whole map, in its own proportions within the square.
  const double longest = static_cast<double>(std::max(g.rows, g.cols));
  const auto share = [&](int64_t n) {
    return std::max(0.15f, static_cast<float>(static_cast<double>(n) / longest));
  };
  const ScreenRect whole{area.x1 - area.width() * share(g.cols), area.y0, area.x1,
                         area.y0 + area.height() * share(g.rows)};
  draw.AddRectFilled({whole.x0, whole.y0}, {whole.x1, whole.y1}, ui.theme.raised);
  ScreenRect left = whole, right = whole;
  if (scene.other.state) {
    const float at = whole.width() * scene.state.other->split.value_or(0.5f);
    left.x1 = right.x0 = std::round(whole.x0 + at);
    draw_side(ui, scene, *scene.other.state, whole, right, other_);
  }
  draw_side(ui, scene, scene.state, whole, left, own_);
  if (scene.other.state) {
    draw.AddLine({right.x0, whole.y0}, {right.x0, whole.y1}, ui.theme.side_b, ui.px(1));
  }
  const ViewTransform view{fit_rect(g.rows, g.cols), whole};
  draw.AddRect({whole.x0, whole.y0}, {whole.x1, whole.y1}, ui.theme.border);
  const auto frame = [&](const MapRect& r, ImU32 colour) {
    const float x0 = std::clamp(view.x(r.k0), whole.x0, whole.x1);
    const float y0 = std::clamp(view.y(r.q0), whole.y0, whole.y1);
    const float x1 = std::max(std::clamp(view.x(r.k1), whole.x0, whole.x1), x0 + ui.px(6));
    const float y1 = std::max(std::clamp(view.y(r.q1), whole.y0, whole.y1), y0 + ui.px(6));
    draw.AddRect({x0 - 1, y0 - 1}, {x1 + 1, y1 + 1}, IM_COL32(0, 0, 0, 160), 0, 0, ui.px(3));
    draw.AddRect({x0, y0}, {x1, y1}, colour, 0, 0, ui.px(1));
  };
  const MapRect& r = scene.state.rect;
  if (scene.other.state && scene.other.state->rect != r) {
    frame(scene.other.state->rect, ui.theme.side_b);
  }
  frame(r, IM_COL32(255, 255, 255, 255));
  ImGui::SetCursorScreenPos({whole.x0, whole.y0});
  ImGui::InvisibleButton("minimap", {whole.width(), whole.height()});
  mark(ui, "Matrix/Overview");
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) {
    tooltip("the whole map, in colours of its own range; drag to move");
  }
  if (!ImGui::IsItemActive()) return false;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const double queries = view.query(mouse.y) - (r.q0 + r.q1) / 2;
  const double keys = view.key(mouse.x) - (r.k0 + r.k1) / 2;
  if (queries != 0 || keys != 0) requests.act(action::Pan{queries, keys});
  return true;
}

}  // namespace attnscope
