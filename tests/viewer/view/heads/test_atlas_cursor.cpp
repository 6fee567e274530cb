// A cursor over the heads as they stand: wrapped, sorted, with holes that a filter leaves.
#include "tests/support/catch.h"
#include "viewer/view/heads/atlas_cursor.h"

using namespace attnscope;

namespace {

/// Lines of heads; `-` is one that is not shown.
AtlasCells cells_of(const std::vector<std::string>& lines) {
  AtlasCells cells;
  for (size_t line = 0; line < lines.size(); ++line) {
    AtlasLine made;
    for (size_t head = 0; head < lines[line].size(); ++head) {
      AtlasHead one;
      one.id = {static_cast<int64_t>(line), 0, static_cast<int64_t>(head)};
      one.shown = lines[line][head] != '-';
      made.heads.push_back(one);
    }
    cells.lines.push_back(made);
  }
  return cells;
}

AtlasLayout layout_of(const AtlasCells& cells, size_t columns) {
  AtlasLayout layout;
  for (size_t line = 0; line < cells.lines.size(); ++line) {
    const size_t count = cells.lines[line].heads.size();
    for (size_t first = 0; first < count; first += columns) {
      layout.rows.push_back({line, first, std::min(columns, count - first), 0});
    }
  }
  return layout;
}

using enum CursorMove;

}  // namespace

TEST_CASE("the cursor goes through rows and columns, over holes, and stops at the ends") {
  const AtlasCells cells = cells_of({"ab-de", "-----", "a--d"});
  const AtlasLayout layout = layout_of(cells, 5);
  const auto go = [&](HeadId from, CursorMove move) {
    return *moved_cursor(cells, layout, from, move);
  };
  CHECK(go({0, 0, 1}, right) == HeadId{0, 0, 3});
  CHECK(go({0, 0, 3}, left) == HeadId{0, 0, 1});
  CHECK(go({0, 0, 4}, right) == HeadId{2, 0, 0});
  CHECK(go({2, 0, 0}, left) == HeadId{0, 0, 4});
  CHECK(go({0, 0, 0}, left) == HeadId{0, 0, 0});
  CHECK(go({2, 0, 3}, right) == HeadId{2, 0, 3});
  // The row in between has none.
  CHECK(go({0, 0, 4}, down) == HeadId{2, 0, 3});
  CHECK(go({0, 0, 1}, down) == HeadId{2, 0, 0});
  CHECK(go({2, 0, 3}, up) == HeadId{0, 0, 3});
  CHECK(go({0, 0, 4}, up) == HeadId{0, 0, 4});
  CHECK(go({2, 0, 0}, down) == HeadId{2, 0, 0});
  CHECK(go({0, 0, 4}, first) == HeadId{0, 0, 0});
  CHECK(go({0, 0, 0}, last) == HeadId{2, 0, 3});
  // From a head that is hidden, or none of these.
  CHECK(go({0, 0, 2}, right) == HeadId{0, 0, 0});
  CHECK(go({7, 0, 0}, down) == HeadId{0, 0, 0});
  CHECK_FALSE(moved_cursor(cells_of({"--"}), {}, {0, 0, 0}, right));
}

TEST_CASE("up and down go by the rows of a layer that goes on below") {
  const AtlasCells cells = cells_of({"abcdefgh"});
  const AtlasLayout layout = layout_of(cells, 3);
  CHECK(moved_cursor(cells, layout, {0, 0, 1}, down) == HeadId{0, 0, 4});
  CHECK(moved_cursor(cells, layout, {0, 0, 5}, down) == HeadId{0, 0, 7});
  CHECK(moved_cursor(cells, layout, {0, 0, 7}, up) == HeadId{0, 0, 4});
}

TEST_CASE("heads between two are those that are shown, in the order in which they stand") {
  const AtlasCells cells = cells_of({"ab-de", "abc"});
  const auto between = [&](HeadId a, HeadId b) {
    std::string text;
    for (const AtlasHead& head : heads_between(cells, a, b)) {
      text += std::to_string(head.id.call) + "." + std::to_string(head.id.head) + " ";
    }
    return text;
  };
  CHECK(between({0, 0, 1}, {1, 0, 0}) == "0.1 0.3 0.4 1.0 ");
  CHECK(between({1, 0, 0}, {0, 0, 1}) == "0.1 0.3 0.4 1.0 ");
  CHECK(between({1, 0, 2}, {1, 0, 2}) == "1.2 ");
  CHECK(between({0, 0, 2}, {1, 0, 0}) == "1.0 ");
  CHECK(between({9, 0, 0}, {0, 0, 2}).empty());
}
