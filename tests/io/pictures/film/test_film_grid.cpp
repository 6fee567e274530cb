#include <algorithm>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "io/pictures/film/film_grid.h"
#include "tests/support/catch.h"
#include "tests/support/drawn_page.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

QueryVolumes films(size_t heads, std::array<int64_t, 3> grid) {
  QueryVolumes volumes;
  volumes.grid = grid;
  volumes.model = "a model";
  volumes.query_text = "query 1,2,3";
  volumes.domain = "all";
  volumes.domain_text = "softmax domain all";
  for (size_t i = 0; i < heads; ++i) {
    QueryVolume volume;
    volume.label = "step 10 layer " + std::to_string(i / 8) + " cond joint batch 0 head " +
                   std::to_string(i % 8);
    if (i == 0) volume.query = {1, 2, 3};
    for (int64_t n = 0; n < grid[0] * grid[1] * grid[2]; ++n) {
      volume.video.push_back(static_cast<float>((n * 37 + 11 * static_cast<int64_t>(i)) % 101 + 1) /
                             (100.0F * static_cast<float>(i + 1)));
    }
    volumes.volumes.push_back(std::move(volume));
  }
  return volumes;
}

PictureStyle style_of(StyleName name, int width, int height = 0) {
  PictureStyle look = picture_style(name);
  look.page_width = width;
  look.page_height = height;
  look.vector = true;
  return look;
}

/// Lines of labels one after the other.
std::string running_text(const QueryVolumes& volumes, const FilmStyle& style) {
  std::string text = page_texts(drawn_page(FilmGrid(volumes, style).page(), style.look));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

FilmStyle listing_style() {
  FilmStyle style;
  style.look.vector = true;
  return style;
}

std::string complaint_of(const QueryVolumes& volumes, const FilmStyle& style) {
  try {
    const FilmGrid grid(volumes, style);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
}

}  // namespace

TEST_CASE("more than a dozen films are a grid, unless cells or columns are asked for") {
  FilmStyle style;
  CHECK_FALSE(FilmGrid::suits(films(12, {1, 4, 4}), style));
  const QueryVolumes many = films(13, {1, 4, 4});
  CHECK(FilmGrid::suits(many, style));
  style.columns = 4;
  CHECK_FALSE(FilmGrid::suits(many, style));
  style.columns = 0;
  style.look.cell = 6;
  CHECK_FALSE(FilmGrid::suits(many, style));
}

TEST_CASE("a grid of films has each cell in its colour, and the query outlined") {
  const QueryVolumes volumes = films(30, {3, 5, 8});
  const FilmGrid grid(volumes, {});
  const Canvas page = drawn_page(grid.page(), {});
  REQUIRE(page.width() == grid.width());
  REQUIRE(page.height() == grid.height());
  CHECK(grid.height() <= grid.width());
  CHECK(grid.band_bytes() < int64_t{3} * page.width() * page.height() / 2);
  std::set<std::pair<int, int>> places;
  size_t wrong = 0;
  for (size_t v = 0; v < 30; ++v) {
    const ColourScale scale = ColourScale::fit({}, volumes.volumes[v].video);
    for (int n = 0; n < 120; ++n) {
      const PixelRect at = grid.cell(v, n / 40, n / 8 % 5, n % 8);
      places.insert({at.x, at.y});
      // Outlines of the query may lie on its neighbours.
      if (v == 0 && n / 40 == 1) continue;
      const Rgb expected = scale.colour(volumes.volumes[v].video[static_cast<size_t>(n)]);
      wrong += page.at(at.x + at.width / 2, at.y + at.height / 2) != expected;
    }
  }
  CHECK(wrong == 0);
  CHECK(places.size() == 30 * 120);
  const PixelRect query = grid.cell(0, 1, 2, 3);
  CHECK(page.at(query.x - 1, query.y + query.height / 2) == Rgb{0x4a, 0xa8, 0xff});
}

TEST_CASE("labels of small films tell what differs, the header what all have") {
  const QueryVolumes volumes = films(30, {3, 5, 8});
  FilmStyle style = listing_style();
  const std::string text = page_texts(drawn_page(FilmGrid(volumes, style).page(), style.look));
  INFO(text);
  CHECK(text.find("\nlayer 0 head 0\n") != std::string::npos);
  CHECK(text.find("\nlayer 3 head 5\n") != std::string::npos);
  CHECK(text.find("all of step 10 cond joint batch 0") != std::string::npos);
  CHECK(text.find("t 0 to 2, line by line") != std::string::npos);
  CHECK(text.find("each film in its own range") != std::string::npos);
  style.frames = {2};
  const std::string one = running_text(volumes, style);
  INFO(one);
  CHECK(one.find(" t 2 ") != std::string::npos);
  CHECK(one.find("line by line") == std::string::npos);
}

TEST_CASE("facts without a digit that all films have are told, and a word's blanks part nothing") {
  QueryVolumes volumes = films(26, {1, 5, 8});
  for (size_t i = 0; i < 26; ++i) {
    volumes.volumes[i].label = "layer " + std::to_string(i / 2) + " cond joint";
  }
  const std::string branch = running_text(volumes, listing_style());
  INFO(branch);
  CHECK(branch.find("all of cond joint ") != std::string::npos);
  CHECK(branch.find(" layer 12 ") != std::string::npos);
  for (size_t i = 0; i < 26; ++i) {
    volumes.volumes[i].label = "step 0 layer " + std::to_string(i / 2) +
                               " joint head 3  ·  text token " +
                               (i % 2 == 0 ? "4  \"red\"" : "5  \"a red cube\"");
  }
  const std::string words = running_text(volumes, listing_style());
  INFO(words);
  CHECK(words.find("all of step 0 joint head 3 text ") != std::string::npos);
  CHECK(words.find(" layer 12 token 4 \"red\" ") != std::string::npos);
  CHECK(words.find(" layer 12 token 5 \"a red cube\" ") != std::string::npos);
  for (size_t i = 0; i < 26; ++i) {
    const std::string layer = "layer " + std::to_string(i);
    volumes.volumes[i].label = layer + " joint − " + layer + " joint";
  }
  const std::string sides = running_text(volumes, listing_style());
  INFO(sides);
  CHECK(sides.find("all of joint − joint ") != std::string::npos);
  CHECK(sides.find(" layer 25 − layer 25 ") != std::string::npos);
}

TEST_CASE("labels that have no words in common stand whole, in lines") {
  QueryVolumes volumes = films(13, {3, 12, 12});
  volumes.volumes[0].label = "step 10 layer 0 batch 0 head 0";
  for (size_t i = 1; i < 13; ++i) {
    volumes.volumes[i].label += " of a model that has a very long name and many parts of it";
  }
  const std::string text = running_text(volumes, listing_style());
  INFO(text);
  CHECK(text.find(" " + volumes.volumes[0].label + " ") != std::string::npos);
  for (const QueryVolume& volume : volumes.volumes) {
    CHECK(text.find(volume.label) != std::string::npos);
  }
  CHECK(text.find("…") == std::string::npos);
}

TEST_CASE("on a narrow page nothing of a grid is cut, or it is refused with the way out") {
  QueryVolumes volumes = films(16, {1, 12, 12});
  int drawn = 0, refused = 0;
  for (const StyleName name : {StyleName::dark, StyleName::paper}) {
    for (int width = 60; width <= 460; width += 20) {
      for (const bool one_range : {false, true}) {
        INFO("width " << width << ", one range " << one_range);
        FilmStyle style;
        style.look = style_of(name, width);
        if (one_range) style.colours.range = {false, 3.21e-5, 0.0123, false};
        const std::string problem = complaint_of(volumes, style);
        if (!problem.empty()) {
          ++refused;
          INFO(problem);
          CHECK(problem.find("--columns") != std::string::npos);
          continue;
        }
        ++drawn;
        const Canvas page = drawn_page(FilmGrid(volumes, style).page(), style.look);
        check_page_texts(page);
        const std::string text = running_text(volumes, style);
        INFO(text);
        CHECK(text.find("…") == std::string::npos);
        for (int i = 0; i < 16; ++i) {
          const std::string label =
              " layer " + std::to_string(i / 8) + " head " + std::to_string(i % 8) + " ";
          CHECK(text.find(label) != std::string::npos);
        }
      }
    }
  }
  CHECK(drawn > 5);
  CHECK(refused > 5);
}

TEST_CASE("a grid tells films that have nothing to scale, or no value") {
  QueryVolumes volumes = films(14, {1, 5, 8});
  FilmStyle style = listing_style();
  CHECK(running_text(volumes, style).find("nothing") == std::string::npos);
  std::fill(volumes.volumes[5].video.begin(), volumes.volumes[5].video.end(), 0.0F);
  const std::string text = running_text(volumes, style);
  INFO(text);
  CHECK(text.find("low high * nothing to scale") != std::string::npos);
  CHECK(text.find("layer 0 head 5*") != std::string::npos);
  CHECK(text.find("layer 0 head 4*") == std::string::npos);
  style.look.legend = false;
  CHECK(running_text(volumes, style).find("*") == std::string::npos);

  style.look.legend = true;
  style.colours = {Colormap::coolwarm, ScaleKind::symlog, {false, 0, 0, false}};
  for (QueryVolume& volume : volumes.volumes) {
    std::fill(volume.video.begin(), volume.video.end(), std::numeric_limits<float>::quiet_NaN());
  }
  CHECK(running_text(volumes, style).find("weight no value ") != std::string::npos);
  volumes.volumes[7].video[3] = 0;
  CHECK(running_text(volumes, style).find("weight 0 everywhere ") != std::string::npos);
}

TEST_CASE("films of weights times the norms of values say so") {
  QueryVolumes volumes = films(13, {1, 5, 8});
  CHECK(film_unit(volumes) == "weight");
  volumes.weighting = "value";
  CHECK(film_unit(volumes) == "weight × ‖v‖");
  const FilmStyle style = listing_style();
  const std::string told = "weights times ‖v‖, the norm of the key's value";
  CHECK(running_text(volumes, style).find(told) != std::string::npos);
}

TEST_CASE("a grid of films has its page in every style, and no text is cut or lies on another") {
  for (const std::array<int64_t, 3>& shape :
       {std::array<int64_t, 3>{7, 12, 12}, {21, 30, 52}, {1, 3, 200}}) {
    const QueryVolumes volumes = films(40, shape);
    for (const auto& [name, width] :
         std::vector<std::pair<StyleName, int>>{{StyleName::dark, 0},
                                                {StyleName::dark, 2400},
                                                {StyleName::paper, 2008},
                                                {StyleName::slide, 1920}}) {
      INFO(shape[0] << "x" << shape[1] << "x" << shape[2] << " " << width);
      FilmStyle style;
      style.look = style_of(name, width);
      const FilmGrid grid(volumes, style);
      if (width > 0) CHECK(grid.width() == width);
      CHECK(grid.height() <= 3 * grid.width());
      check_page_texts(drawn_page(grid.page(), style.look));
    }
  }
  FilmStyle style;
  style.look = style_of(StyleName::slide, 1920, 1080);
  CHECK(FilmGrid(films(16, {7, 12, 12}), style).height() <= 1080);
}

TEST_CASE("films that make no page to look at are refused with what helps") {
  const QueryVolumes volumes = films(480, {21, 30, 52});
  FilmStyle style;
  const std::string high = complaint_of(volumes, style);
  INFO(high);
  CHECK(high.starts_with("480 films of 21 frames make a picture of "));
  CHECK(high.find("fewer heads") != std::string::npos);
  CHECK(high.find("--columns") != std::string::npos);
  style.frames = {0, 10, 20};
  CHECK(complaint_of(volumes, style) == "");
  style.look = style_of(StyleName::slide, 1920, 1080);
  const std::string box = complaint_of(volumes, style);
  INFO(box);
  CHECK(box.starts_with("--size: this picture is at least "));
  style.frames.clear();
  style.look = style_of(StyleName::dark, 70);
  CHECK(complaint_of(films(13, {1, 30, 52}), style).starts_with("--width: this picture needs"));
}
