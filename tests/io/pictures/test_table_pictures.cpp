#include <cmath>
#include <limits>

#include "io/pictures/metric_table.h"
#include "io/pictures/mosaic_picture.h"
#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const PictureStyle kDark;

bool same(Rgb a, Rgb b) { return a == b; }

TableNames numbered(size_t rows, size_t columns) {
  TableNames names{"layer", "head", {}, {}};
  for (size_t r = 0; r < rows; ++r) names.rows.push_back(std::to_string(r));
  for (size_t c = 0; c < columns; ++c) names.columns.push_back(std::to_string(c));
  return names;
}

Picture read_back(const Canvas& canvas) {
  const TemporaryFolder folder;
  write_picture(canvas, {}, "", folder / "p.png", false);
  return read_png(folder / "p.png");
}

PooledMap ramp(int64_t rows, int64_t cols, float factor) {
  PooledMap map;
  map.rows = rows;
  map.cols = cols;
  for (int64_t i = 0; i < rows * cols; ++i) {
    map.mean.push_back(factor * static_cast<float>(i + 1));
    map.max.push_back(factor * static_cast<float>(2 * i + 3));
  }
  return map;
}

}  // namespace

TEST_CASE("a heat table colours its cells, prints numbers and hatches what is missing") {
  MetricTable table;
  table.names = numbered(3, 4);
  table.value_name = "text_mass";
  for (int i = 0; i < 12; ++i) table.values.push_back(0.05f * static_cast<float>(i));
  table.values[6] = std::numeric_limits<float>::quiet_NaN();
  const HeatTablePicture picture(table);
  const Picture read = read_back(picture.draw());
  REQUIRE(read.width == static_cast<uint32_t>(picture.width()));
  REQUIRE(read.height == static_cast<uint32_t>(picture.height()));
  const ColourScale scale = ColourScale::fit(table.colours, table.values);
  CHECK(scale.range().high == Approx(0.55));
  for (int64_t i = 0; i < 12; ++i) {
    const PixelRect at = picture.cell(i / 4, i % 4);
    INFO(i);
    REQUIRE(at.width >= 28);
    int ink = 0;
    int hatch = 0;
    for (int y = at.y; y < at.y + at.height; ++y) {
      for (int x = at.x; x < at.x + at.width; ++x) {
        const Rgb colour = read.at(x, y);
        ink += same(colour, {0, 0, 0}) || same(colour, {0xff, 0xff, 0xff});
        hatch += same(colour, kDark.empty_hatch);
      }
    }
    if (i == 6) {
      CHECK(hatch > at.width * at.height / 8);
      CHECK(ink == 0);
      continue;
    }
    CHECK(same(read.at(at.x + 1, at.y + 1), scale.colour(table.values[static_cast<size_t>(i)])));
    CHECK(ink > 40);
    CHECK(hatch == 0);
  }
}

TEST_CASE("a large heat table has no numbers, and cells of at least 8 pixels") {
  MetricTable table;
  table.names = numbered(60, 200);
  table.value_name = "entropy";
  table.values.assign(60 * 200, 3.0f);
  const HeatTablePicture picture(table);
  const PixelRect at = picture.cell(59, 199);
  CHECK(at.width == 8);
  CHECK(at.x + at.width < picture.width());
  CHECK(at.y + at.height < picture.height());
  const Picture read = read_back(picture.draw());
  const ColourScale scale = ColourScale::fit(table.colours, table.values);
  int wrong = 0;
  for (int y = 0; y < at.height; ++y) {
    for (int x = 0; x < at.width; ++x) wrong += !same(read.at(at.x + x, at.y + y), scale.colour(3));
  }
  CHECK(wrong == 0);
  const PixelRect corner = picture.cell(0, 199);
  const int bar_x = corner.x + corner.width + 24 + 8;
  CHECK_FALSE(same(read.at(bar_x, corner.y + 80), kDark.background));
  // Without a value there is no range, and no bar that claims one.
  table.values.assign(60 * 200, std::numeric_limits<float>::quiet_NaN());
  CHECK(same(HeatTablePicture(table).draw().at(bar_x, corner.y + 80), kDark.background));
  table.values.pop_back();
  CHECK_THROWS(HeatTablePicture(table).draw());
}

TEST_CASE("a mosaic's maps have their own range, or all the same") {
  for (const bool alike : {false, true}) {
    MosaicContent content;
    content.names = numbered(2, 3);
    content.alike = alike;
    content.colours.scale = ScaleKind::linear;
    content.colours.range = {true, 0, 1};
    for (int i = 0; i < 5; ++i) content.maps.push_back(ramp(8, 8, static_cast<float>(1 << i)));
    content.maps.emplace_back();
    const MosaicPicture picture(content);
    const Picture read = read_back(picture.draw());
    REQUIRE(read.width == static_cast<uint32_t>(picture.width()));
    for (int64_t i = 0; i < 5; ++i) {
      INFO("map " << i << " alike " << alike);
      const double high = alike ? 64 * 16 : 64 << i;
      const double low = alike ? 1 : 1 << i;
      for (const int64_t n : {int64_t{0}, int64_t{20}, int64_t{63}}) {
        const PixelRect at = picture.cell(i / 3, i % 3, n / 8, n % 8);
        const double value = static_cast<double>(n + 1) * (1 << i);
        const Rgb expected = colormap_at(Colormap::viridis, (value - low) / (high - low));
        CHECK(same(read.at(at.x, at.y), expected));
        CHECK(same(read.at(at.x + at.width - 1, at.y + at.height - 1), expected));
      }
    }
    const PixelRect missing = picture.cell(1, 2, 0, 0);
    CHECK(same(read.at(missing.x, missing.y), kDark.empty_hatch));
  }
}

TEST_CASE("thumbnails do not overlap and stay on the page") {
  for (const auto& [rows, columns, cells] :
       {std::array<size_t, 3>{60, 48, 64}, {4, 4, 63}, {1, 1, 1}, {2, 3, 200}}) {
    MosaicContent content;
    content.names = numbered(rows, columns);
    content.maps.assign(rows * columns,
                        ramp(static_cast<int64_t>(cells), static_cast<int64_t>(cells), 1));
    const MosaicPicture picture(content);
    const auto last = static_cast<int64_t>(cells) - 1;
    const PixelRect end =
        picture.cell(static_cast<int64_t>(rows) - 1, static_cast<int64_t>(columns) - 1, last, last);
    CHECK(end.x + end.width < picture.width());
    CHECK(end.y + end.height < picture.height());
    if (columns > 1) {
      const PixelRect first_end = picture.cell(0, 0, 0, last);
      CHECK(first_end.x + first_end.width < picture.cell(0, 1, 0, 0).x);
    }
  }
}
