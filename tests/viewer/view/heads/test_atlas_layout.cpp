// Where the cells of an atlas stand: as large as fit, each head once, none beyond the room's width.
#include <vector>

#include "tests/support/catch.h"
#include "viewer/view/heads/atlas_layout.h"

using namespace attnscope;

namespace {

std::vector<size_t> layers(size_t count, size_t heads) { return std::vector<size_t>(count, heads); }

constexpr AtlasRoom kPane{480, 640, 30, 0, 4, 6, 96};

void check_rows(const AtlasLayout& layout, const std::vector<size_t>& lines,
                const AtlasRoom& room) {
  std::vector<size_t> seen(lines.size());
  double below = 0;
  for (const AtlasRow& row : layout.rows) {
    CHECK(row.first == seen[row.line]);
    seen[row.line] += row.count;
    CHECK(row.y >= below);
    below = row.y + layout.tall + room.name;
    CHECK(room.labels + static_cast<double>(row.count) * layout.cell <= room.width);
  }
  CHECK(seen == lines);
  CHECK(layout.height == below);
}

}  // namespace

TEST_CASE("an atlas fills its pane: heads of a large model wrap within their layers") {
  struct Case {
    size_t layers, heads;
    double least_cell;
    size_t columns;
  };
  // A model of 42 layers, one of 30, three layers of a capture, a sample's four heads.
  for (const Case& c : {Case{42, 48, 9, 48}, Case{30, 48, 9, 48}, Case{3, 48, 42, 10},
                        Case{3, 4, 96, 4}, Case{40, 3, 12, 3}, Case{1, 1, 96, 1}}) {
    const auto lines = layers(c.layers, c.heads);
    const AtlasLayout layout = AtlasLayout::fit(lines, kPane);
    INFO(c.layers << " x " << c.heads << ": " << layout.cell << " px, " << layout.columns);
    check_rows(layout, lines, kPane);
    CHECK(layout.cell >= c.least_cell);
    CHECK(layout.columns == c.columns);
    CHECK(layout.wrapped == (c.columns < c.heads));
    CHECK(layout.height <= kPane.height);
  }
}

TEST_CASE("cells that a narrow pane keeps small are taller, up to twice, until they fill it") {
  const AtlasRoom narrow{120, 900, 30, 0, 4, 6, 96};
  const auto lines = layers(20, 3);
  const AtlasLayout layout = AtlasLayout::fit(lines, narrow);
  check_rows(layout, lines, narrow);
  CHECK(layout.cell == 30);
  CHECK(layout.tall == 45);
  const auto few = layers(4, 3);
  const AtlasLayout twice = AtlasLayout::fit(few, {60, 900, 30, 10, 4, 6, 96});
  check_rows(twice, few, {60, 900, 30, 10, 4, 6, 96});
  CHECK(twice.tall == 2 * twice.cell);
  // As large as cells may be they are square, and so are those whose size somebody chose.
  CHECK(AtlasLayout::fit(layers(1, 2), kPane).tall == 96);
  const AtlasLayout chosen = AtlasLayout::fit(lines, narrow, 0.5);
  CHECK(chosen.tall == chosen.cell);
}

TEST_CASE("an atlas wraps where that makes cells much larger, and not for a little") {
  AtlasRoom room{300, 500, 0, 0, 4, 6, 96};
  const auto few = layers(3, 4);
  // In rows of three they would be 81 pixels wide instead of 75.
  CHECK_FALSE(AtlasLayout::fit(few, room).wrapped);
  const auto many = layers(3, 12);
  const AtlasLayout wrapped = AtlasLayout::fit(many, room);
  CHECK(wrapped.wrapped);
  check_rows(wrapped, many, room);
  // Rows of a layer are about equally long: 4 and 4 and 4, not 5 and 5 and 2.
  for (const AtlasRow& row : wrapped.rows) CHECK(row.count == wrapped.columns);
}

TEST_CASE("an atlas with more heads than fit goes on below, and enlarged cells wrap anew") {
  const AtlasRoom room{200, 100, 20, 12, 4, 6, 96};
  const auto lines = layers(60, 128);
  const AtlasLayout layout = AtlasLayout::fit(lines, room);
  CHECK(layout.cell == 6);
  CHECK(layout.height > room.height);
  check_rows(layout, lines, room);
  const AtlasLayout large = AtlasLayout::fit(lines, room, 8);
  CHECK(large.cell == 48);
  check_rows(large, lines, room);
  CHECK(large.row_at(0) == 0);
  CHECK(large.row_at(59.9) == 0);
  CHECK(large.row_at(60) == 1);
  CHECK(large.row_at(1e9) == large.rows.size());
  CHECK(AtlasLayout::fit({}, room).rows.empty());
  CHECK(AtlasLayout::fit(std::vector<size_t>{0, 0}, room).rows.empty());
}
