#include <cmath>

#include "io/files/utf8.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/matrix_picture.h"
#include "io/pictures/text/text_ink.h"
#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const PictureStyle kDark;

bool same(Rgb a, Rgb b) { return a == b; }
constexpr Rgb kLine{0x3c, 0x44, 0x4d};

/// 10 text tokens, then 3 frames of 4×5: 70 tokens in blocks of 4.
MatrixContent sample_content(TextPlace place) {
  MatrixContent content;
  content.query_tokens = content.key_tokens = TokenGrid::video(70, {3, 4, 5}, 10, place);
  content.rows = content.cols = {0, 70};
  content.map.block_rows = content.map.block_cols = 4;
  content.map.rows = content.map.cols = 18;
  for (int i = 0; i < 18 * 18; ++i) {
    content.map.max.push_back(i % 11 == 0 ? 0.0f : std::exp2(-0.05f * static_cast<float>(i)));
    content.map.mean.push_back(std::exp2(-0.01f * static_cast<float>(i)) / 16);
  }
  content.text = {"tiny", {"step 10 layer 3 cond head 2"}};
  return content;
}

Picture drawn(const MatrixPicture& picture) {
  const TemporaryFolder folder;
  write_picture(picture.draw(), {}, "", folder / "m.png", false);
  return read_png(folder / "m.png");
}

}  // namespace

TEST_CASE("a matrix picture has every cell in its colour, none of them hidden by a line") {
  for (const Pool pool : {Pool::max, Pool::mean}) {
    MatrixContent content = sample_content(TextPlace::start);
    content.pool = pool;
    content.colours.map = Colormap::magma;
    const MatrixPicture picture(content);
    const Picture read = drawn(picture);
    REQUIRE(read.width == static_cast<uint32_t>(picture.width()));
    REQUIRE(read.height == static_cast<uint32_t>(picture.height()));
    const auto& values = content.map.values(pool);
    const ColourScale scale = ColourScale::fit(content.colours, values);
    int wrong = 0;
    for (int64_t r = 0; r < 18; ++r) {
      for (int64_t c = 0; c < 18; ++c) {
        const PixelRect at = picture.cell(r, c);
        CHECK(at.width == 48);
        const Rgb colour = scale.colour(values[static_cast<size_t>(r * 18 + c)]);
        for (int y = at.y; y < at.y + at.height; ++y) {
          for (int x = at.x; x < at.x + at.width; ++x) wrong += !same(read.at(x, y), colour);
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cells of which nothing is known are hatched, all others as they were") {
  MatrixContent content = sample_content(TextPlace::start);
  const Picture whole = drawn(MatrixPicture(content));
  content.missing.assign(18 * 18, 0);
  for (size_t i = 5 * 18; i < content.missing.size(); i += 3) content.missing[i] = 1;
  const MatrixPicture picture(content);
  const Picture read = drawn(picture);
  int wrong = 0;
  for (int64_t r = 0; r < 18; ++r) {
    for (int64_t c = 0; c < 18; ++c) {
      const PixelRect at = picture.cell(r, c);
      const bool missing = content.missing[static_cast<size_t>(r * 18 + c)] != 0;
      int stripes = 0, gaps = 0;
      for (int y = at.y; y < at.y + at.height; ++y) {
        for (int x = at.x; x < at.x + at.width; ++x) {
          stripes += same(read.at(x, y), kLine);
          gaps += same(read.at(x, y), {0x07, 0x08, 0x09});
          if (!missing) wrong += !same(read.at(x, y), whole.at(x, y));
        }
      }
      if (missing) CHECK((stripes == 48 * 48 / 3 && gaps == 48 * 48 - stripes));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("frame lines stand between cells, at the block edges nearest to the frames") {
  const MatrixContent content = sample_content(TextPlace::start);
  const MatrixPicture picture(content);
  const Picture read = drawn(picture);
  // Frames begin at tokens 10, 30, 50: cells 2.5 (3 is as near), 7.5, 12.5.
  REQUIRE(picture.key_axis().lines() == std::vector<int64_t>{3, 8, 13});
  const int y = picture.cell(5, 0).y + 10;
  for (int64_t c = 1; c < 18; ++c) {
    const PixelRect at = picture.cell(5, c);
    const bool line = c == 3 || c == 8 || c == 13;
    INFO(c);
    CHECK(same(read.at(at.x - 1, y), kLine) == line);
    CHECK(at.x == picture.cell(5, c - 1).x + 48 + (line ? 1 : 0));
  }
  const int x = picture.cell(0, 5).x + 10;
  for (int64_t r = 1; r < 18; ++r) {
    const bool line = r == 3 || r == 8 || r == 13;
    CHECK(same(read.at(x, picture.cell(r, 5).y - 1), kLine) == line);
  }
  // The bands: text first, then frames in turn.
  const int band = picture.cell(0, 0).y - 9;
  const Rgb text = read.at(picture.cell(0, 1).x, band);
  CHECK(same(text, Rgb{0xb4, 0xbd, 0xc7}));
  CHECK(same(read.at(picture.cell(0, 2).x + 40, band), text));
  CHECK_FALSE(same(read.at(picture.cell(0, 3).x + 2, band), text));
  CHECK_FALSE(
      same(read.at(picture.cell(0, 3).x + 2, band), read.at(picture.cell(0, 8).x + 2, band)));
}

TEST_CASE("an axis names text and frames, and leaves out what does not fit") {
  const TokenGrid grid = TokenGrid::video(17776, {13, 30, 45}, 226, TextPlace::start);
  const MatrixAxis axis(grid, {0, 17776}, 32, 1);
  CHECK(axis.cells() == 556);
  CHECK(axis.lines().size() == 13);
  CHECK(axis.length() == 556 + 13);
  const auto names = axis.names();
  REQUIRE(names.size() == 14);
  CHECK(names[0].text == "text");
  CHECK(names[1].text == "t 0");
  CHECK(names[1].pixel == 7 + 1);
  CHECK(axis.numbers()[2].text == "1576");
  const auto fitting = fitting_labels(names, 12, -1, kDark.text_height);
  REQUIRE(fitting.size() >= 4);
  CHECK(fitting[0].text == "text");
  for (size_t i = 1; i < fitting.size(); ++i) {
    CHECK(fitting[i].pixel >=
          fitting[i - 1].pixel + text_width(fitting[i - 1].text, kDark.text_height) + 12);
    // Under the text there is no room for t 0.
    CHECK(fitting[i].text != "t 0");
  }
  const MatrixAxis tail(TokenGrid::video(70, {3, 4, 5}, 10, TextPlace::end), {0, 70}, 1, 14);
  CHECK(tail.names().back().text == "text");
  CHECK(tail.lines() == std::vector<int64_t>{20, 40, 60});
  const MatrixAxis crop(grid, {1000, 2000}, 1, 1);
  REQUIRE(crop.segments().size() == 2);
  CHECK(crop.segments()[1].cell == 576);
  const MatrixAxis plain(TokenGrid::unknown(1000), {100, 900}, 4, 5);
  CHECK(plain.names().empty());
  CHECK(plain.lines().empty());
  CHECK(plain.numbers().front().text == "100");
  CHECK(plain.numbers()[1].text == "120");
  CHECK(plain.numbers()[1].pixel == 25);
  // 81 frames in 81 cells: no lines, and still a border to the text.
  const MatrixAxis crowded(TokenGrid::video(82 * 4, {81, 2, 2}, 4, TextPlace::start), {0, 328}, 4,
                           1);
  CHECK(crowded.lines() == std::vector<int64_t>{1});
}

TEST_CASE("a matrix picture is no smaller than its cells and never shrunk") {
  MatrixContent content;
  content.query_tokens = TokenGrid::unknown(1);
  content.key_tokens = TokenGrid::unknown(3000);
  content.rows = {0, 1};
  content.cols = {0, 3000};
  content.map.rows = 1;
  content.map.cols = 3000;
  content.map.max.assign(3000, 0.5f);
  content.map.mean = content.map.max;
  content.text = {"one row", {}};
  const MatrixPicture picture(content);
  CHECK(picture.cell(0, 2999).x - picture.cell(0, 0).x == 2999);
  CHECK(picture.height() > 160);
  content.map.max.pop_back();
  CHECK_THROWS(MatrixPicture(content).draw());
  content.map.cols = 2999;
  CHECK_THROWS(MatrixPicture(content));
}

TEST_CASE("long lines of a header are broken at their separators, never cut there") {
  const std::string part(40, 'm');
  const PictureText text{"title", {joined_parts({part, part, "", "softmax domain all"}), "short"}};
  const PictureText one{"title", {"short"}};
  const int line =
      header_height({"title", {"a", "b"}}, kDark) - header_height({"title", {"a"}}, kDark);
  CHECK(header_height(text, kDark) == header_height(one, kDark) + 2 * line);
  CHECK(header_width(text, kDark) <= 1040);
  CHECK(header_width({"title", {joined_parts({std::string(200, 'm'), "short"})}}, kDark) <= 1040);
  CHECK(joined_parts({"a", "", "b"}) == "a  ·  b");
  CHECK(elided("abcdef", 400, kDark.text_height) == "abcdef");
  for (const int size : {kDark.small_height, kDark.text_height, kDark.title_height}) {
    const std::string cut = elided(std::string(100, 'm') + "…", 40 * size, size);
    CHECK(text_width(cut, size) <= 40 * size);
    CHECK(text_width(cut, size) > 38 * size);
    CHECK(cut.ends_with("…"));
  }
  // Characters of several bytes stay whole, or are left out.
  const std::string dots = elided("·····················", 60, kDark.text_height);
  CHECK(valid_utf8(dots));
  CHECK(text_ink(dots, kDark.text_height).size() > 3);
  CHECK(elided("abcdef", 1, kDark.text_height) == "…");
}
