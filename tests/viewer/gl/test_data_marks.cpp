// Lines and frames over the map and the film are seen on every colour table, in both themes. Needs
// a display: run by ctest under xvfb-run.
#include <algorithm>
#include <cmath>

#include "io/pictures/colormap.h"
#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr Rgb kQueryMark{0x62, 0xb4, 0xff}, kKeyMark{0xff, 0x9f, 0x43}, kEdge{0, 0, 0};
/// Of WCAG 2.2, 1.4.11, for what is no text.
constexpr double kLeastContrast = 3;
constexpr int64_t kPicked = 700, kQuery = 300, kKey = 512;

double luminance(Rgb c) {
  const auto linear = [](int channel) {
    const double v = channel / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

double contrast(Rgb a, Rgb b) {
  const auto [dark, bright] = std::minmax({luminance(a), luminance(b)});
  return (bright + 0.05) / (dark + 0.05);
}

/// Of the pixels from (x, y) on, across or down: how many have this colour, and the least contrast
/// of such a line with what lies beside it, its edges taken together with its core.
struct Line {
  int count = 0, whole = 0;
  double least = 1e9;
};

Line read_line(const gl::ReadPixels& seen, const ScreenRect& area, int at, bool down, Rgb colour) {
  Line line;
  const auto pixel = [&](int along, int across) {
    return down ? seen.at(at + across, along) : seen.at(along, at + across);
  };
  const int begin = static_cast<int>(down ? area.y0 : area.x0);
  const int end = static_cast<int>(down ? area.y1 : area.x1);
  for (int i = begin + 8; i < end - 8; ++i) {
    ++line.whole;
    if (pixel(i, 0) != colour) continue;
    ++line.count;
    for (const int side : {-1, 1}) {
      const Rgb edge = pixel(i, side), data = pixel(i, 2 * side);
      if (edge != kEdge) continue;
      line.least = std::min(line.least, std::max(contrast(colour, data), contrast(edge, data)));
    }
  }
  line.least = std::min(line.least, contrast(colour, kEdge));
  return line;
}

/// read_line() of the line of that colour beside `at`: the mouse is on whole pixels, its token not.
Line find_line(const gl::ReadPixels& seen, const ScreenRect& area, int at, bool down, Rgb colour) {
  Line found;
  for (const int near : {at - 1, at, at + 1}) {
    const Line line = read_line(seen, area, near, down, colour);
    if (line.count > found.count) found = line;
  }
  return found;
}

/// The pixel of the middle of a token, along a side of the whole map of 1024.
int middle(float low, float high, int64_t token) {
  const float at = low + (high - low) * (static_cast<float>(token) + 0.5f) / 1024;
  return static_cast<int>(std::round(at - 0.5f));
}

}  // namespace

TEST_CASE("lines over the map are seen on every colour table, in both themes") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size({1200, 760}));
  hidden.app.act(action::PickQuery{{{kPicked}}});
  for (const ViewTheme theme : {ViewTheme::dark, ViewTheme::light}) {
    hidden.app.act(action::SetTheme{theme});
    for (const std::string_view name : colormap_names()) {
      hidden.app.act(action::SetColormap{std::string(name)});
      hidden.settle();
      const ScreenRect map = *hidden.app.labels().find("Matrix/Map");
      const int picked = middle(map.y0, map.y1, kPicked), row = middle(map.y0, map.y1, kQuery);
      const int column = middle(map.x0, map.x1, kKey);
      hidden.app.mouse().hover(static_cast<float>(column) + 0.5f, static_cast<float>(row) + 0.5f);
      REQUIRE(hidden.wait_for(WaitFor::exact));
      hidden.settle();
      const gl::ReadPixels seen = hidden.app.picture();
      INFO(name << (theme == ViewTheme::dark ? ", dark" : ", light"));
      const Line solid = read_line(seen, map, picked, false, kQueryMark);
      const Line across = find_line(seen, map, row, false, kQueryMark);
      const Line down = find_line(seen, map, column, true, kKeyMark);
      for (const Line& line : {solid, across, down}) CHECK(line.least >= kLeastContrast);
      // The column's line crosses it.
      CHECK(solid.count >= solid.whole - 3);
      for (const Line& dashed : {across, down}) {
        CHECK(dashed.count > dashed.whole / 3);
        CHECK(dashed.count < dashed.whole * 3 / 4);
      }
    }
  }
}

TEST_CASE("picked tokens are named at the ruler, in the ruler's numbers") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size({1200, 760}));
  REQUIRE(hidden.wait_for(WaitFor::exact));
  const auto name = [&]() -> std::string {
    hidden.settle();
    const auto chip = hidden.app.labels().find("Matrix/Picked");
    if (!chip) return "";
    for (const WrittenText& text : hidden.app.labels().texts()) {
      const bool within = chip->contains(text.rect.x0, text.rect.y0) && text.rect.x1 <= chip->x1 &&
                          text.rect.y1 <= chip->y1;
      if (within) return text.whole;
    }
    return "?";
  };
  CHECK(name().empty());
  const Document& document = *hidden.app.document();
  const TokenGrid& grid = document.calls.front().queries;
  hidden.app.act(action::PickQuery{{{grid.index_of({3, 5, 6})}}});
  CHECK(name() == "q 3,5,6");
  const ScreenRect map = *hidden.app.labels().find("Matrix/Map");
  CHECK(hidden.app.labels().find("Matrix/Picked")->x1 < map.x0);
  hidden.app.act(action::SetReverse{true});
  CHECK(name() == "k 3,5,6");
  CHECK(hidden.app.labels().find("Matrix/Picked")->y1 < map.y0);
  hidden.app.act(action::PickQuery{{{grid.index_of({3, 5, 6}), grid.index_of({3, 5, 7})}}});
  CHECK(name() == "k mean of 2");
  // Beyond what is seen it has no place.
  hidden.app.act(action::SetRect{{0, 64, 0, 64}});
  CHECK(name().empty());
}

TEST_CASE("frames over the film have a dark edge around a bright core") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size({1200, 760}));
  hidden.app.act(action::PickQuery{{{kPicked}}});
  for (const ViewTheme theme : {ViewTheme::dark, ViewTheme::light}) {
    hidden.app.act(action::SetTheme{theme});
    REQUIRE(hidden.wait_for(WaitFor::exact));
    hidden.settle();
    const TokenGrid& grid = hidden.app.document()->calls.front().queries;
    const auto frame = hidden.app.labels().find("Query/t" + std::to_string(grid.coord(kPicked)->t));
    REQUIRE(frame);
    const gl::ReadPixels seen = hidden.app.picture();
    int core = 0, edged = 0;
    for (int y = static_cast<int>(frame->y0); y < static_cast<int>(frame->y1); ++y) {
      for (int x = static_cast<int>(frame->x0); x < static_cast<int>(frame->x1); ++x) {
        if (seen.at(x, y) != kQueryMark) continue;
        ++core;
        bool beside = false;
        for (const int dy : {-1, 0, 1}) {
          for (const int dx : {-1, 0, 1}) beside = beside || seen.at(x + dx, y + dy) == kEdge;
        }
        edged += beside ? 1 : 0;
      }
    }
    CHECK(core > 24);
    CHECK(edged == core);
  }
}
