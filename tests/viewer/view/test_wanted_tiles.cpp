#include <cmath>
#include <set>

#include "tests/support/catch.h"
#include "viewer/view/wanted_tiles.h"

using namespace attnscope;

namespace {

/// Of a map 100 000 × 50 000: level 9 has 196 × 98 texels.
MapGeometry big() { return {100000, 50000, 9, 5}; }

ViewState view(const MapRect& rect) {
  ViewState state;
  state.head = {1, 0, 2};
  state.rect = rect;
  return state;
}

bool covers(const TileId& id, double query, double key) {
  const double side = 256 * std::exp2(id.level);
  return query >= static_cast<double>(id.row) * side &&
         query < static_cast<double>(id.row + 1) * side &&
         key >= static_cast<double>(id.col) * side && key < static_cast<double>(id.col + 1) * side;
}

/// The entries drawn, and that nothing is drawn twice: the area of all pieces.
double drawn_area(const DrawPlan& plan) {
  double area = 0;
  for (const DrawnTile& tile : plan.tiles) {
    area += (tile.place.q1 - tile.place.q0) * (tile.place.k1 - tile.place.k0);
  }
  return area;
}

}  // namespace

TEST_CASE("a texel takes half a pixel to one") {
  const MapGeometry map = big();
  for (const double entries : {3000.0, 9999.0, 20000.0, 50000.0}) {
    for (const double pixels : {300.0, 700.0, 1500.0}) {
      const int level = view_level({0, entries, 0, entries}, map, {pixels, pixels});
      const double texel = std::exp2(level) * pixels / entries;
      INFO(entries << " entries on " << pixels);
      CHECK(texel >= 0.5);
      CHECK((texel < 1 || level == 0));
    }
  }
  CHECK(view_level({0, 10, 0, 10}, map, {800, 800}) == 0);
  CHECK(view_level({0, 100000, 0, 50000}, map, {8, 8}) == map.top_level);
  // The axis with more pixels an entry decides, until there are too many tiles.
  CHECK(view_level({0, 100000, 0, 500}, map, {800, 800}) == 0);
  const int level = view_level({0, 100000, 0, 50000}, map, {40000, 40000});
  CHECK(level == 4);
  CHECK(map.tile_rows(level) * map.tile_cols(level) <= kMaxViewTiles);
  CHECK(map.tile_rows(level - 1) * map.tile_cols(level - 1) > kMaxViewTiles);
}

TEST_CASE("the tiles seen are those that the view touches, the middle first") {
  const MapGeometry map = big();
  const auto tiles = seen_tiles(view({1000, 3000, 500, 1025}), map, 0);
  // Rows 3 … 11, columns 1 … 4.
  CHECK(tiles.size() == 9 * 4);
  double before = 0;
  std::set<TileId> unique;
  for (const TileId& id : tiles) {
    CHECK(id.head == HeadId{1, 0, 2});
    CHECK(id.quantity == Quantity::weights);
    CHECK((id.row >= 3 && id.row <= 11 && id.col >= 1 && id.col <= 4));
    const double distance = std::hypot((static_cast<double>(id.row) + 0.5) * 256 - 2000,
                                       (static_cast<double>(id.col) + 0.5) * 256 - 762.5);
    CHECK(distance >= before - 1e-9);
    before = distance;
    unique.insert(id);
  }
  CHECK(unique.size() == tiles.size());
  CHECK(seen_tiles(view({-500, -10, 0, 100}), map, 0).empty());
  // Beyond the map there are no tiles.
  CHECK(seen_tiles(view({-100000, 200000, -50000, 100000}), map, 9).size() == 1);
  ViewState logits = view({0, 10, 0, 10});
  logits.product = ViewProduct::logits;
  CHECK(seen_tiles(logits, map, 0).front().quantity == Quantity::logits);
}

TEST_CASE("coarser tiles are wanted first, and cover all that is seen") {
  const MapGeometry map = big();
  const ViewState state = view({20000, 26000, 10000, 16000});
  const auto wanted = wanted_tiles(state, map, {1000, 1000});
  const int finest = view_level(state.rect, map, {1000, 1000});
  CHECK(finest == 2);
  REQUIRE_FALSE(wanted.empty());
  CHECK(wanted.front().level == map.top_level);
  CHECK(wanted.back().level == finest);
  for (size_t i = 1; i < wanted.size(); ++i) CHECK(wanted[i].level <= wanted[i - 1].level);
  REQUIRE(map.base_level > finest + 1);
  for (int level = finest; level <= map.top_level; ++level) {
    const bool between = level > finest && level < map.base_level;
    for (const double query : {20000.0, 23456.0, 25999.0}) {
      for (const double key : {10000.0, 12345.0, 15999.0}) {
        int count = 0;
        for (const TileId& id : wanted) count += id.level == level && covers(id, query, key);
        INFO(level << " " << query << " " << key);
        CHECK(count == (between ? 0 : 1));
      }
    }
  }
  CHECK(wanted_tiles(state, map, {0, 1000}).empty());
  CHECK(plan_drawing(state, map, {1000, 0}, [](const TileId&) { return true; }).tiles.empty());
}

TEST_CASE("a picture is never blank: the nearest coarser tile stands in") {
  const MapGeometry map = big();
  const ViewState state = view({20000, 26000, 10000, 16000});
  const PaneSize pane{1000, 1000};
  const DrawPlan all = plan_drawing(state, map, pane, [](const TileId&) { return true; });
  CHECK(all.level == 2);
  CHECK(all.stand_ins == 0);
  CHECK(all.missing == 0);
  for (const DrawnTile& tile : all.tiles) {
    CHECK(tile.source == tile.wanted);
    CHECK(tile.row0 == 0);
    CHECK(tile.col1 == 256);
  }
  // Levels 4 and 9 are there, of level 2 one tile.
  const TileId own{state.head, Quantity::weights, 2, 22, 12};
  const DrawPlan plan = plan_drawing(state, map, pane, [&](const TileId& id) {
    return id == own || id.level == 4 || id.level == map.top_level;
  });
  CHECK(plan.missing == 0);
  CHECK(plan.tiles.size() == all.tiles.size());
  CHECK(plan.stand_ins == static_cast<int64_t>(all.tiles.size()) - 1);
  CHECK(drawn_area(plan) == drawn_area(all));
  for (const DrawnTile& tile : plan.tiles) {
    CHECK(tile.source.level == (tile.wanted == own ? 2 : 4));
    // The texels are those of the entries.
    const double side = std::exp2(tile.source.level);
    CHECK((static_cast<double>(tile.source.row) * 256 + tile.row0) * side == tile.place.q0);
    CHECK((static_cast<double>(tile.source.row) * 256 + tile.row1) * side == tile.place.q1);
    CHECK((static_cast<double>(tile.source.col) * 256 + tile.col0) * side == tile.place.k0);
    CHECK((static_cast<double>(tile.source.col) * 256 + tile.col1) * side == tile.place.k1);
    CHECK((tile.row0 >= 0 && tile.row1 <= 256 && tile.col0 >= 0 && tile.col1 <= 256));
    CHECK(covers(tile.wanted, tile.place.q0, tile.place.k0));
  }
}

TEST_CASE("pieces end where the map ends") {
  const MapGeometry map{1000, 700, 2, 0};
  const ViewState state = view({-100, 1100, -100, 1100});
  const DrawPlan plan = plan_drawing(state, map, {150, 150},
                                     [&](const TileId& id) { return id.level == map.top_level; });
  CHECK(plan.level == 2);
  REQUIRE(plan.tiles.size() == 1);
  CHECK(plan.tiles[0].place == MapRect{0, 1000, 0, 700});
  CHECK(plan.tiles[0].row1 == 250);
  CHECK(plan.tiles[0].col1 == 175);
}

TEST_CASE("finer tiles stand in where no coarser one is there, and gaps are counted") {
  const MapGeometry map{1000, 1000, 2, 0};
  const ViewState state = view({0, 1000, 0, 1000});
  const auto level_of = [&](PaneSize pane, const std::function<bool(const TileId&)>& known) {
    return plan_drawing(state, map, pane, known);
  };
  // The view's level is 2, a single tile; only level 0 is known.
  const DrawPlan fine = level_of({150, 150}, [](const TileId& id) { return id.level == 0; });
  CHECK(fine.level == 2);
  CHECK(fine.tiles.size() == 16);
  CHECK(fine.missing == 0);
  CHECK(fine.stand_ins == 1);
  CHECK(drawn_area(fine) == 1e6);
  const DrawPlan holes = level_of(
      {150, 150}, [](const TileId& id) { return id.level == 0 && (id.row != 0 || id.col != 0); });
  CHECK(holes.tiles.size() == 15);
  CHECK(holes.missing == 1);
  CHECK(drawn_area(holes) == 1e6 - 65536);
  const DrawPlan nothing = level_of({150, 150}, [](const TileId&) { return false; });
  CHECK(nothing.tiles.empty());
  CHECK(nothing.missing == 1);
  CHECK(nothing.stand_ins == 0);
}

TEST_CASE("the line is that of the picked query, else of the mouse") {
  ViewState state = view({0, 10, 0, 10});
  CHECK_FALSE(wanted_line(state, std::nullopt));
  const auto hovered = wanted_line(state, 7);
  REQUIRE(hovered);
  CHECK(hovered->tokens == std::vector<int64_t>{7});
  CHECK_FALSE(hovered->reverse);
  state.query = ChosenQuery{{1, 4}};
  state.reverse = true;
  state.product = ViewProduct::lift;
  const auto picked = wanted_line(state, 7);
  REQUIRE(picked);
  CHECK(*picked == LineRequest{{1, 0, 2}, Quantity::weights, true, {1, 4}});
}
