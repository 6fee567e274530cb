#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/magnified.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/wanted_tiles.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Tiles of single entries whose number is 1000 · row + column, those that it is told to have.
struct NumberedTiles : TileSource {
  MapGeometry sizes;
  std::vector<TileId> there;
  bool exact_tiles = true;

  explicit NumberedTiles(MapGeometry of) : sizes(of) {}
  MapGeometry geometry(const HeadId&) const override { return sizes; }
  void want(Wishes) override {}
  Answer find(const Ask& ask) const override {
    const auto* const id = std::get_if<TileId>(&ask);
    if (id == nullptr || std::find(there.begin(), there.end(), *id) == there.end()) {
      return no_answer(ask);
    }
    auto tile = std::make_shared<MapTile>();
    tile->id = *id;
    tile->rows = std::min(kTileSide, sizes.rows - id->row * kTileSide);
    tile->cols = std::min(kTileSide, sizes.cols - id->col * kTileSide);
    tile->exact = exact_tiles;
    for (int64_t r = 0; r < tile->rows; ++r) {
      for (int64_t c = 0; c < tile->cols; ++c) {
        const int64_t number = 1000 * (id->row * kTileSide + r) + id->col * kTileSide + c;
        tile->max.push_back(static_cast<float>(number));
        tile->mean.push_back(-static_cast<float>(number));
      }
    }
    return std::shared_ptr<const MapTile>(tile);
  }
  std::string problem(const Ask&) const override { return ""; }
  bool offers(const Ask&) const override { return true; }
  bool exact(const HeadId&) const override { return exact_tiles; }
  TileSourceStatus status() const override { return {}; }
};

const ViewState kState = opened_view(three_calls());

}  // namespace

TEST_CASE("the magnified entries are those around a place, in one to four tiles") {
  NumberedTiles tiles(MapGeometry::of(1000, 700));
  const MapGeometry& sizes = tiles.sizes;
  CHECK(magnified_tiles(kState, sizes, 100, 100) == std::vector{tile_of(kState, 0, 0, 0)});
  tiles.there = magnified_tiles(kState, sizes, 256, 255);
  CHECK(tiles.there == std::vector{tile_of(kState, 0, 0, 0), tile_of(kState, 0, 0, 1),
                                   tile_of(kState, 0, 1, 0), tile_of(kState, 0, 1, 1)});
  const Magnified seen = magnified(kState, sizes, tiles, 256, 255);
  CHECK(seen.complete);
  CHECK(seen.exact);
  for (int64_t down = 0; down < kMagnified; ++down) {
    for (int64_t across = 0; across < kMagnified; ++across) {
      const auto number = static_cast<float>(1000 * (251 + down) + 250 + across);
      CHECK(seen.value(down, across) == number);
    }
  }
}

TEST_CASE("what lies beyond the map is none of the magnified entries") {
  NumberedTiles tiles(MapGeometry::of(1000, 700));
  tiles.there = magnified_tiles(kState, tiles.sizes, 999, 2);
  const Magnified seen = magnified(kState, tiles.sizes, tiles, 999, 2);
  CHECK(seen.complete);
  CHECK(seen.value(5, 5) == 999002.0f);
  CHECK(seen.value(5, 3) == 999000.0f);
  CHECK_FALSE(seen.value(5, 2));
  CHECK_FALSE(seen.value(6, 5));
  CHECK(seen.value(0, 10) == 994007.0f);
}

TEST_CASE("magnified entries say what is missing, and what is a sample") {
  NumberedTiles tiles(MapGeometry::of(1000, 700));
  tiles.there = {tile_of(kState, 0, 0, 0)};
  const Magnified part = magnified(kState, tiles.sizes, tiles, 10, 256);
  CHECK_FALSE(part.complete);
  CHECK_FALSE(part.exact);
  CHECK(part.value(5, 4) == 10255.0f);
  CHECK_FALSE(part.value(5, 5));
  tiles.exact_tiles = false;
  const Magnified sampled = magnified(kState, tiles.sizes, tiles, 10, 10);
  CHECK(sampled.complete);
  CHECK_FALSE(sampled.exact);
}

TEST_CASE("where magnified entries are still to come, the finest that covers them stands") {
  NumberedTiles tiles(MapGeometry::of(1000, 700));
  tiles.there = {tile_of(kState, 0, 0, 0), tile_of(kState, 2, 0, 0), tile_of(kState, 1, 0, 0)};
  const Magnified part = magnified(kState, tiles.sizes, tiles, 10, 256);
  CHECK(part.complete);
  CHECK_FALSE(part.exact);
  CHECK(part.coarsest == 1);
  CHECK(part.number(5, 4) == 10255.0f);
  CHECK_FALSE(part.number(5, 5));
  // Entry (11, 257) lies in texel (5, 128) of level 1.
  CHECK(part.value(6, 6) == 5128.0f);
  tiles.there = {tile_of(kState, 2, 0, 0)};
  const Magnified coarse = magnified(kState, tiles.sizes, tiles, 10, 256);
  CHECK(coarse.coarsest == 2);
  CHECK(coarse.value(6, 6) == 2064.0f);
}

TEST_CASE("magnified entries are pooled as the map's are") {
  NumberedTiles tiles(MapGeometry::of(1000, 700));
  ViewState state = kState;
  state.pool = Pool::mean;
  tiles.there = magnified_tiles(state, tiles.sizes, 10, 10);
  CHECK(magnified(state, tiles.sizes, tiles, 10, 10).value(5, 5) == -10010.0f);
}
