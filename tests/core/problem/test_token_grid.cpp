#include "core/problem/token_grid.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using attnscope::test::refused;

TEST_CASE("index and position are each other's inverse") {
  struct Case {
    int64_t text;
    TextPlace place;
    std::string name;
  };
  for (const Case& c : {Case{0, TextPlace::none, "none"}, Case{5, TextPlace::start, "5@start"},
                        Case{7, TextPlace::end, "7@end"}, Case{0, TextPlace::start, "none"}}) {
    INFO(c.name);
    const int64_t cells = 3 * 4 * 5;
    const TokenGrid grid = TokenGrid::video(cells + c.text, {3, 4, 5}, c.text, c.place);
    CHECK(grid.text_text() == c.name);
    CHECK(grid.grid_text() == "3x4x5");
    CHECK(grid.has_grid());
    CHECK(grid.video_range().size() == cells);
    CHECK(grid.text_range().size() == c.text);
    int64_t video = 0;
    for (int64_t i = 0; i < grid.tokens(); ++i) {
      const auto coord = grid.coord(i);
      CHECK(coord.has_value() == (grid.segment(i) == Segment::video));
      CHECK(grid.text_range().contains(i) == !coord.has_value());
      if (!coord) continue;
      // Row-major, in the order of the sequence.
      CHECK((coord->t * 4 + coord->y) * 5 + coord->x == video++);
      CHECK(grid.index_of(*coord) == i);
    }
    CHECK(video == cells);
  }
}

TEST_CASE("text beyond the valid tokens is padding") {
  TokenGrid grid = TokenGrid::video(10, {1, 2, 2}, 6, TextPlace::end);
  grid.set_text_valid({2, 6});
  CHECK(grid.segment(3, 0) == Segment::video);
  CHECK(grid.segment(5, 0) == Segment::text);
  CHECK(grid.segment(6, 0) == Segment::padding);
  CHECK(grid.segment(9, 1) == Segment::text);
  grid.set_text_valid({0});
  CHECK(grid.segment(4, 1) == Segment::padding);
  CHECK(refused([&] { grid.set_text_valid({7}); }, ErrorCode::usage, {"7", "0 to 6"}) == "");
  CHECK(refused([&] { grid.set_text_valid({3, -1}); }, ErrorCode::usage, {"-1"}) == "");
}

TEST_CASE("sequences without a grid") {
  const TokenGrid unknown = TokenGrid::unknown(7);
  CHECK(unknown.tokens() == 7);
  CHECK_FALSE(unknown.has_grid());
  CHECK(unknown.grid_text() == "none");
  CHECK(unknown.text_text() == "none");
  CHECK(unknown.segment(6) == Segment::video);
  CHECK_FALSE(unknown.coord(0).has_value());
  CHECK(refused([&] { unknown.index_of({0, 0, 0}); }, ErrorCode::usage, {"grid"}) == "");
  const TokenGrid text = TokenGrid::text_only(7);
  CHECK(text.text_text() == "all");
  CHECK(text.segment(0) == Segment::text);
  CHECK(text.text_range() == IndexRange{0, 7});
  CHECK(text.video_range().empty());
  CHECK_FALSE(text == unknown);
}

TEST_CASE("grids that do not fit the sequence are refused") {
  const auto video = [](int64_t tokens, std::array<int64_t, 3> grid, int64_t text,
                        TextPlace place) {
    return [=] { TokenGrid::video(tokens, grid, text, place); };
  };
  CHECK(refused(video(17776, {13, 30, 46}, 226, TextPlace::start), ErrorCode::usage,
                {"13x30x46", "226", "18166", "17776"}) == "");
  CHECK(refused(video(0, {0, 3, 4}, 0, TextPlace::none), ErrorCode::usage, {"0x3x4"}) == "");
  CHECK(refused(video(10, {1, 3, 4}, -2, TextPlace::start), ErrorCode::usage, {"-2"}) == "");
  CHECK(refused(video(1, {int64_t{1} << 40, int64_t{1} << 40, 1}, 0, TextPlace::none),
                ErrorCode::usage, {"1099511627776"}) == "");
  CHECK(refused(video(13, {1, 3, 4}, 1, TextPlace::none), ErrorCode::usage, {"start"}) == "");
  CHECK(refused(video(13, {1, 3, 4}, 1, TextPlace::all), ErrorCode::usage, {"start"}) == "");
}

TEST_CASE("positions outside the grid name the valid range") {
  const TokenGrid grid = TokenGrid::video(60, {3, 4, 5}, 0, TextPlace::none);
  CHECK(refused([&] { grid.index_of({3, 0, 0}); }, ErrorCode::usage, {"T = 3", "0 to 2"}) == "");
  CHECK(refused([&] { grid.index_of({0, 4, 0}); }, ErrorCode::usage, {"Y = 4", "0 to 3"}) == "");
  CHECK(refused([&] { grid.index_of({0, 0, -1}); }, ErrorCode::usage, {"X = -1", "0 to 4"}) == "");
}

TEST_CASE("latent frames cover the video frames of the model") {
  const VideoGeometry cogvideox{1, 4, 16};
  CHECK(TokenGrid::video_frames(0, cogvideox) == IndexRange{0, 1});
  CHECK(TokenGrid::video_frames(1, cogvideox) == IndexRange{1, 5});
  CHECK(TokenGrid::video_frames(12, cogvideox) == IndexRange{45, 49});
  // 17 frames are five latent frames.
  const VideoGeometry minimax{1, 4, 32, 5};
  const int64_t ends[] = {1, 5, 9, 13, 17, 18, 22};
  for (int64_t t = 0; t < 7; ++t) {
    CHECK(TokenGrid::video_frames(t, minimax) == IndexRange{t == 0 ? 0 : ends[t - 1], ends[t]});
  }
}

TEST_CASE("grids and text spans are read as they are written") {
  CHECK(parse_grid("13x30x45") == std::array<int64_t, 3>{13, 30, 45});
  for (const std::string text : {"", "13", "13x30", "13x30x45x2", "0x1x1", "-1x2x3", "axbxc",
                                 "1x2x", "1x2x3 ", "9999999999x9999999999x2"}) {
    INFO(text);
    CHECK(refused([&] { parse_grid(text); }, ErrorCode::usage, {"TxHxW"}) == "");
  }
  CHECK(parse_text_span("226@start").count == 226);
  CHECK(parse_text_span("226@start").place == TextPlace::start);
  CHECK(parse_text_span("256@end").place == TextPlace::end);
  CHECK(parse_text_span("none").place == TextPlace::none);
  CHECK(parse_text_span("all").place == TextPlace::all);
  for (const std::string text : {"", "226", "226@", "@start", "226@middle", "-1@end", "x@start",
                                 "99999999999999999999@end"}) {
    INFO(text);
    CHECK(refused([&] { parse_text_span(text); }, ErrorCode::usage, {"N@start"}) == "");
  }
}
