#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "core/problem/token_order.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::vector<int32_t> tokens_in(const std::string& order, const TokenGrid& grid) {
  const PlaceOrder places = make_place_order(TokenOrder::parse(order), grid);
  std::vector<int32_t> tokens;
  for (int64_t place = 0; place < grid.tokens(); ++place) {
    tokens.push_back(static_cast<int32_t>(places.token(place)));
    CHECK(places.place(places.token(place)) == place);
  }
  return tokens;
}

TokenOrder listed(std::vector<int64_t> list) {
  TokenOrder order;
  order.kind = TokenOrder::Kind::listed;
  order.file = "order.txt";
  order.list = std::make_shared<const std::vector<int64_t>>(std::move(list));
  return order;
}

TokenSegment segment(const std::string& name, Modality modality, IndexRange tokens) {
  TokenSegment made;
  made.name = name;
  made.modality = modality;
  made.tokens = tokens;
  return made;
}

}  // namespace

TEST_CASE("orders of a small grid, by hand") {
  // Two text tokens, then (t, y, x) of 2×2×3 at 2 + 6·t + 3·y + x.
  const TokenGrid grid = TokenGrid::video(14, {2, 2, 3}, 2, TextPlace::start);
  CHECK(tokens_in("yxt", grid) ==
        std::vector<int32_t>{0, 1, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12, 7, 13});
  CHECK(tokens_in("xty", grid) ==
        std::vector<int32_t>{0, 1, 2, 5, 8, 11, 3, 6, 9, 12, 4, 7, 10, 13});
  // Tiles of 2×1×2; the one at the far edge has a single column.
  CHECK(tokens_in("tiles:2x1x2", grid) ==
        std::vector<int32_t>{0, 1, 2, 3, 8, 9, 4, 10, 5, 6, 11, 12, 7, 13});
  CHECK(tokens_in("morton", grid) ==
        std::vector<int32_t>{0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 4, 7, 10, 13});
  for (const char* const same : {"stored", "raster", "tyx", "tiles:2x2x3", "tiles:9x9x9"}) {
    INFO(same);
    CHECK(make_place_order(TokenOrder::parse(same), grid).is_identity());
  }
}

TEST_CASE("every order has each token once, and text where it was") {
  const TokenGrid grid = TokenGrid::video(5 * 6 * 7 + 9, {5, 6, 7}, 9, TextPlace::end);
  for (const char* const name :
       {"yxt", "ytx", "xyt", "xty", "txy", "tiles:2x4x3", "tiles:1x1x1", "hilbert", "morton"}) {
    INFO(name);
    std::vector<int32_t> tokens = tokens_in(name, grid);
    for (int32_t text = 210; text < 219; ++text) CHECK(tokens[static_cast<size_t>(text)] == text);
    std::sort(tokens.begin(), tokens.end());
    for (int32_t i = 0; i < 219; ++i) CHECK(tokens[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("neighbours on a Hilbert curve are neighbours in a cube") {
  const TokenGrid cube = TokenGrid::video(512, {8, 8, 8}, 0, TextPlace::none);
  const PlaceOrder order = make_place_order(TokenOrder::parse("hilbert"), cube);
  for (int64_t place = 1; place < 512; ++place) {
    const LatentCoord a = *cube.coord(order.token(place - 1)), b = *cube.coord(order.token(place));
    CHECK(std::abs(a.t - b.t) + std::abs(a.y - b.y) + std::abs(a.x - b.x) == 1);
  }
}

TEST_CASE("tokens of a map go by their cells, whatever order they are stored in") {
  // A reference of 2×2 cells stored column by column, then a video of 2×2×2 in tiles of 1×2×1.
  TokenSegment words = segment("words", Modality::text, {0, 2});
  TokenSegment reference = segment("ref", Modality::reference, {2, 6});
  reference.grid = {1, 2, 2};
  reference.order = CellOrder::listed;
  reference.cells = std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{0, 2, 1, 3});
  TokenSegment video = segment("video", Modality::video, {6, 14});
  video.grid = {2, 2, 2};
  video.order = CellOrder::tiles;
  video.tile = {1, 2, 1};
  const TokenGrid grid = TokenGrid::of_segments({words, reference, video});
  CHECK(tokens_in("stored", grid) ==
        std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  // Stored video: (0,0,0) (0,1,0) (0,0,1) (0,1,1), then frame 1 alike.
  CHECK(tokens_in("raster", grid) ==
        std::vector<int32_t>{0, 1, 2, 4, 3, 5, 6, 8, 7, 9, 10, 12, 11, 13});
  CHECK(ordered_grids(grid).size() == 2);
  // A list may be of the whole sequence; of one grid of two it cannot be told which.
  CHECK(order_problem(listed({0, 1, 2, 3, 4, 5, 6, 7}), OrderedSide::of(grid)) ==
        "order.txt: has 8 numbers, expected 14");
  reference.cells = nullptr;
  const TokenGrid unknown = TokenGrid::of_segments({words, reference, video});
  REQUIRE(ordered_grids(unknown).size() == 1);
  CHECK(ordered_grids(unknown).front().tokens == IndexRange{6, 14});
}

TEST_CASE("lists of a sequence or of its grid, and those that are no orders") {
  const TokenGrid grid = TokenGrid::video(6, {2, 1, 2}, 2, TextPlace::start);
  const OrderedSide side = OrderedSide::of(grid);
  const PlaceOrder whole = make_place_order(listed({5, 0, 1, 2, 4, 3}), grid);
  CHECK(whole.token(0) == 5);
  CHECK(whole.place(0) == 1);
  const PlaceOrder of_grid = make_place_order(listed({3, 2, 1, 0}), grid);
  CHECK(std::vector<int32_t>(of_grid.tokens().begin(), of_grid.tokens().end()) ==
        std::vector<int32_t>{0, 1, 5, 4, 3, 2});
  CHECK(order_problem(listed({0, 1, 2}), side) ==
        "order.txt: has 3 numbers, expected 6 or, of the grid alone, 4");
  CHECK(order_problem(listed({0, 1, 2, 4}), side) == "order.txt: number 3 is 4, expected 0 to 3");
  CHECK(order_problem(listed({0, -1, 2, 3}), side) == "order.txt: number 1 is -1, expected 0 to 3");
  CHECK(order_problem(listed({0, 1, 2, 3, 1, 4}), side) ==
        "order.txt: 1 is there twice, as number 1 and 4; an order has every token once");
}

TEST_CASE("names of orders are read as they are written") {
  for (const char* const name :
       {"stored", "raster", "yxt", "txy", "tiles:4x8x8", "hilbert", "morton"}) {
    CHECK(TokenOrder::parse(name).text() == name);
    CHECK(TokenOrder::is_name(name));
  }
  CHECK(TokenOrder::parse("tyx") == TokenOrder::parse("raster"));
  CHECK_FALSE(TokenOrder::is_name("order.npy"));
  const auto parse_text = [](const std::string& name) -> std::string {
    const auto error = error_of([&] { TokenOrder::parse(name); });
    return error && error->code() == ErrorCode::usage ? error->what() : "no usage error";
  };
  CHECK(contains(parse_text("hilbrt"), "did you mean hilbert?"));
  CHECK(contains(parse_text("tiles:4x8"), "expected tiles:TxHxW"));
  CHECK(contains(parse_text("tiles:0x8x8"), "expected tiles:TxHxW"));
  CHECK(contains(parse_text("yxx"), "order yxx: no such order"));
  CHECK(order_problem(TokenOrder::parse("yxt"), OrderedSide::of(TokenGrid::unknown(8))) ==
        "order yxt: no grid of the tokens is known");
}
