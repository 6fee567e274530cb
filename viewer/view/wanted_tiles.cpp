#include "viewer/view/wanted_tiles.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace attnscope {
namespace {

/// Pixels that a texel takes at least while there are finer levels.
constexpr double kLeastPixels = 0.5;
/// Levels below the wanted one on which stand-ins are looked for.
constexpr int kFinerLevels = 2;

/// Tiles along one axis that a view shows some of.
struct TileSpan {
  int64_t begin = 0, end = 0;
  int64_t size() const { return std::max(int64_t{0}, end - begin); }
};

TileSpan span_of(double from, double to, int64_t tiles, int level) {
  const double side = std::exp2(level) * static_cast<double>(kTileSide);
  const auto last = static_cast<double>(tiles);
  return {static_cast<int64_t>(std::clamp(std::floor(from / side), 0.0, last)),
          static_cast<int64_t>(std::clamp(std::ceil(to / side), 0.0, last))};
}

TileSpan row_span(const MapRect& rect, const MapGeometry& geometry, int level) {
  return span_of(rect.q0, rect.q1, geometry.tile_rows(level), level);
}

TileSpan col_span(const MapRect& rect, const MapGeometry& geometry, int level) {
  return span_of(rect.k0, rect.k1, geometry.tile_cols(level), level);
}

/// The entries that a tile covers.
MapRect entries_of(const TileId& id, const MapGeometry& geometry) {
  const double side = std::exp2(id.level) * static_cast<double>(kTileSide);
  const auto row = static_cast<double>(id.row);
  const auto col = static_cast<double>(id.col);
  return {row * side, std::min((row + 1) * side, static_cast<double>(geometry.rows)), col * side,
          std::min((col + 1) * side, static_cast<double>(geometry.cols))};
}

/// The entries of `place` drawn from a tile that covers them.
DrawnTile drawn_from(const TileId& wanted, const TileId& source, const MapRect& place) {
  const double texel = std::exp2(source.level);
  const auto row = static_cast<double>(source.row * kTileSide);
  const auto col = static_cast<double>(source.col * kTileSide);
  return {wanted,
          source,
          place,
          place.q0 / texel - row,
          place.q1 / texel - row,
          place.k0 / texel - col,
          place.k1 / texel - col};
}

/// Draws `id` from finer tiles; whether all of it is there.
bool draw_finer(const TileId& wanted, const TileId& id, int levels, const MapGeometry& geometry,
                const std::function<bool(const TileId&)>& has, std::vector<DrawnTile>& drawn) {
  if (id.level == 0 || levels == 0) return false;
  bool complete = true;
  for (int64_t part = 0; part < 4; ++part) {
    TileId child = id;
    child.level = id.level - 1;
    child.row = id.row * 2 + part / 2;
    child.col = id.col * 2 + part % 2;
    if (child.row >= geometry.tile_rows(child.level) ||
        child.col >= geometry.tile_cols(child.level)) {
      continue;
    }
    if (has(child)) {
      drawn.push_back(drawn_from(wanted, child, entries_of(child, geometry)));
    } else if (!draw_finer(wanted, child, levels - 1, geometry, has, drawn)) {
      complete = false;
    }
  }
  return complete;
}

}  // namespace

TileId tile_of(const ViewState& state, int level, int64_t row, int64_t col) {
  return {state.map_head(), product_quantity(state.product), level, row, col, state.against()};
}

Quantity product_quantity(ViewProduct product) {
  return product == ViewProduct::logits ? Quantity::logits : Quantity::weights;
}

int view_level(const MapRect& rect, const MapGeometry& geometry, PaneSize pane) {
  const double pixels =
      std::max(pane.height / (rect.q1 - rect.q0), pane.width / (rect.k1 - rect.k0));
  int level = 0;
  while (level < geometry.top_level &&
         (std::exp2(level) * pixels < kLeastPixels ||
          row_span(rect, geometry, level).size() * col_span(rect, geometry, level).size() >
              kMaxViewTiles)) {
    ++level;
  }
  return level;
}

std::vector<TileId> seen_tiles(const ViewState& state, const MapGeometry& geometry, int level) {
  const MapRect& rect = state.rect;
  const double side = std::exp2(level) * static_cast<double>(kTileSide);
  const double row = (rect.q0 + rect.q1) / 2 / side - 0.5;
  const double col = (rect.k0 + rect.k1) / 2 / side - 0.5;
  std::vector<std::tuple<double, int64_t, int64_t>> order;
  const TileSpan rows = row_span(rect, geometry, level);
  const TileSpan cols = col_span(rect, geometry, level);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t c = cols.begin; c < cols.end; ++c) {
      const double dr = static_cast<double>(r) - row;
      const double dc = static_cast<double>(c) - col;
      order.emplace_back(dr * dr + dc * dc, r, c);
    }
  }
  std::sort(order.begin(), order.end());
  std::vector<TileId> tiles;
  for (const auto& [distance, r, c] : order) {
    tiles.push_back(tile_of(state, level, r, c));
  }
  return tiles;
}

std::vector<TileId> wanted_tiles(const ViewState& state, const MapGeometry& geometry,
                                 PaneSize pane) {
  std::vector<TileId> wanted;
  if (!(pane.width > 0) || !(pane.height > 0)) return wanted;
  const int finest = view_level(state.rect, geometry, pane);
  const auto add = [&](int level) {
    const auto tiles = seen_tiles(state, geometry, level);
    wanted.insert(wanted.end(), tiles.begin(), tiles.end());
  };
  for (int level = geometry.top_level; level >= std::max(finest, geometry.base_level); --level) {
    add(level);
  }
  // Tiles between would cover more rows than are seen, all of which need their sums.
  if (finest < geometry.base_level) add(finest);
  return wanted;
}

std::optional<LineRequest> wanted_line(const ViewState& state,
                                       const std::optional<int64_t>& hovered) {
  if (!state.query && !hovered) return std::nullopt;
  LineRequest request{state.head, product_quantity(state.product), state.reverse, {}};
  request.tokens = state.query ? state.query->tokens : std::vector<int64_t>{*hovered};
  return request;
}

DrawPlan plan_drawing(const ViewState& state, const MapGeometry& geometry, PaneSize pane,
                      const std::function<bool(const TileId&)>& has) {
  DrawPlan plan;
  if (!(pane.width > 0) || !(pane.height > 0)) return plan;
  plan.level = view_level(state.rect, geometry, pane);
  for (const TileId& wanted : seen_tiles(state, geometry, plan.level)) {
    TileId source = wanted;
    while (!has(source) && source.level < geometry.top_level) {
      source.level += 1;
      source.row /= 2;
      source.col /= 2;
    }
    if (has(source)) {
      if (source != wanted) ++plan.stand_ins;
      plan.tiles.push_back(drawn_from(wanted, source, entries_of(wanted, geometry)));
      continue;
    }
    const size_t before = plan.tiles.size();
    if (!draw_finer(wanted, wanted, kFinerLevels, geometry, has, plan.tiles)) ++plan.missing;
    if (plan.tiles.size() > before) ++plan.stand_ins;
  }
  return plan;
}

}  // namespace attnscope
