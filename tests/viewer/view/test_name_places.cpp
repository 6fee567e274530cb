// Names along an axis of cells.
#include <string>

#include "tests/support/catch.h"
#include "viewer/view/name_places.h"

using namespace attnscope;

namespace {

/// The text and frames beside one another, in cells of `side` pixels from 100 on; "text" is 24
/// pixels long, "t0" 12.
std::vector<AxisName> frames(size_t count, float side, bool text_first) {
  std::vector<AxisName> names;
  for (size_t i = 0; i <= count; ++i) {
    const bool text = text_first ? i == 0 : i == count;
    names.push_back({100 + (static_cast<float>(i) + 0.5f) * side, text ? 24.0f : 12.0f});
  }
  return names;
}

}  // namespace

TEST_CASE("a long first name costs the first frame none") {
  // Cells of 17 pixels, as the sample's: "text" over its middle would reach into t0's cell.
  const auto names = frames(7, 17, true);
  const auto begins = place_names(names, 56, 246, 5);
  REQUIRE(begins.size() == 8);
  for (size_t i = 0; i < begins.size(); ++i) {
    INFO(i);
    REQUIRE(begins[i]);
    if (i > 0) CHECK(*begins[i] == Approx(names[i].middle - 6));
    if (i > 0) CHECK(*begins[i] - (*begins[i - 1] + names[i - 1].length) >= 5 - 1e-4f);
  }
  // Of narrow cells as well.
  const auto narrow = place_names(frames(33, 5, true), 56, 300, 5);
  CHECK(narrow[0]);
  CHECK(narrow[1]);
  CHECK_FALSE(narrow[2]);
}

TEST_CASE("a long last name has its place before frames between") {
  const auto names = frames(7, 17, false);
  const auto begins = place_names(names, 56, 246, 5);
  for (const auto& begin : begins) CHECK(begin);
  CHECK(*begins[7] + 24 <= 246);
  const auto narrow = place_names(frames(33, 5, false), 56, 280, 5);
  CHECK(narrow[0]);
  CHECK(narrow[33]);
  float end = 0;
  size_t placed = 0;
  const auto cells = frames(33, 5, false);
  for (size_t i = 0; i < narrow.size(); ++i) {
    if (!narrow[i]) continue;
    CHECK(*narrow[i] >= end);
    end = *narrow[i] + cells[i].length;
    CHECK(end <= 280);
    ++placed;
  }
  CHECK(placed > 8);
}

TEST_CASE("names without room are left out") {
  CHECK(place_names({}, 0, 100, 5).empty());
  const std::vector<AxisName> one{{50, 30}};
  CHECK(*place_names(one, 0, 100, 5)[0] == 35);
  CHECK_FALSE(place_names(one, 40, 60, 5)[0]);
}
