// Needs a display: run by ctest under xvfb-run.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <map>

#include "core/base/dtype.h"
#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "viewer/panels/row/film_layout.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// 256 × 256 texels: the weight at (r, c) goes from 2^-16 to 1 along columns and repeats down rows;
/// in column 0 it is 0, and masked in rows from 128 on.
std::vector<uint16_t> ramp_texels() {
  std::vector<uint16_t> pairs;
  for (int r = 0; r < 256; ++r) {
    for (int c = 0; c < 256; ++c) {
      const float log2_max = -16.0f + static_cast<float>(c) / 16;
      const float none = texel_number(r < 128 ? 0.0f : -INFINITY, true);
      pairs.push_back(to_f16(c == 0 ? none : log2_max).bits);
      pairs.push_back(to_f16(c == 0 ? none : log2_max - 2).bits);
    }
  }
  return pairs;
}

struct Painted {
  gl::TexturePool pool{4 * gl::TexturePool::kSlotBytes};
  gl::MapPainter painter;
  gl::PoolSlot slot;

  Painted() {
    slot = pool.take().value();
    pool.upload(slot, 256, 256, ramp_texels());
  }
  gl::ReadPixels draw(const gl::MapColours& colours, int side) {
    gl::Framebuffer target(side, side);
    target.bind();
    glDisable(GL_SCISSOR_TEST);
    glClearColor(1, 0, 1, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    const auto pixels = static_cast<float>(side);
    const std::vector<gl::MapQuad> quads{{0, 0, pixels, pixels, 0, 0, 256, 256, slot}};
    painter.draw_tiles(pool, quads, colours, {side, side, 0, 0, side, side});
    return target.read();
  }
};

int difference(Rgb a, Rgb b) {
  return std::max({std::abs(a.r - b.r), std::abs(a.g - b.g), std::abs(a.b - b.b)});
}

/// The largest difference of a picture's columns from the colours that `unit` of the column's value
/// gives.
int worst_column(const gl::ReadPixels& picture, Colormap map,
                 const std::function<double(int)>& unit) {
  int worst = 0;
  for (int x = 1; x < picture.width; ++x) {
    const Rgb expected = colormap_at(map, std::clamp(unit(x), 0.0, 1.0));
    for (const int y : {0, 100, picture.height - 1}) {
      worst = std::max(worst, difference(picture.at(x, y), expected));
    }
  }
  return worst;
}

/// Neighbouring entries of a table and half floats differ by that much.
constexpr int kTolerance = 4;

}  // namespace

TEST_CASE("a drawn tile has the colours of its numbers, on every scale") {
  const Window window(hidden_window());
  Painted p;
  const auto value = [](int x, double shift = 0) { return std::exp2(-16 + x / 16.0 + shift); };
  gl::MapColours c;
  c.scale.low = -12;
  c.scale.high = -2;
  c.nothing = {0, 0, 0};
  const auto log_unit = [&](int x) { return (-16 + x / 16.0 + 12) / 10; };
  gl::ReadPixels picture = p.draw(c, 256);
  CHECK(worst_column(picture, Colormap::viridis, log_unit) <= kTolerance);
  CHECK(picture.at(0, 7) == Rgb{0, 0, 0});
  // Masked cells look otherwise on every scale, with dots in them.
  for (const ScaleKind kind :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    for (const bool mean : {false, true}) {
      gl::MapColours other = c;
      other.scale.kind = kind;
      other.use_mean = mean;
      other.masked = {0, 0, 1};
      other.masked_dot = {1, 0, 0};
      const gl::ReadPixels seen = p.draw(other, 1024);
      int ground = 0, dots = 0;
      for (int y = 512; y < 1024; ++y) {
        for (int x = 0; x < 4; ++x) {
          ground += seen.at(x, y) == Rgb{0, 0, 255} ? 1 : 0;
          dots += seen.at(x, y) == Rgb{255, 0, 0} ? 1 : 0;
        }
      }
      CHECK(ground + dots == 512 * 4);
      CHECK(dots >= 80);
      CHECK_FALSE(seen.at(1, 100) == Rgb{0, 0, 255});
    }
  }

  c.use_mean = true;
  CHECK(worst_column(p.draw(c, 256), Colormap::viridis, [&](int x) { return log_unit(x) - 0.2; }) <=
        kTolerance);
  c.scale.factor = 4;
  CHECK(worst_column(p.draw(c, 256), Colormap::viridis, log_unit) <= kTolerance);
  c.use_mean = false;
  c.scale.factor = 1;

  p.painter.set_colormap(Colormap::magma);
  c.scale.kind = ScaleKind::linear;
  c.scale.low = 0;
  c.scale.high = 0.5f;
  CHECK(worst_column(p.draw(c, 256), Colormap::magma, [&](int x) { return value(x) / 0.5; }) <=
        kTolerance);
  c.scale.kind = ScaleKind::sqrt;
  c.scale.high = 1;
  CHECK(worst_column(p.draw(c, 256), Colormap::magma, [&](int x) { return std::sqrt(value(x)); }) <=
        kTolerance);
  c.scale.kind = ScaleKind::symlog;
  c.scale.linear = 0.001f;
  c.scale.high = static_cast<float>(std::log2(1 + 1 / 0.001));
  CHECK(worst_column(p.draw(c, 256), Colormap::magma, [&](int x) {
          return std::log2(1 + value(x) / 0.001) / std::log2(1 + 1 / 0.001);
        }) <= kTolerance);
  // None of that uploaded anything.
  CHECK(p.pool.uploads() == 1);
}

TEST_CASE("texels smaller than pixels show their largest") {
  const Window window(hidden_window());
  Painted p;
  gl::MapColours c;
  c.scale.low = -16;
  c.scale.high = 0;
  // Pixel x covers columns 2x and 2x + 1: the larger is the second.
  CHECK(worst_column(p.draw(c, 128), Colormap::viridis,
                     [](int x) { return (2 * x + 1) / 256.0; }) <= kTolerance);
}

TEST_CASE("a line's cells are drawn in their places") {
  const Window window(hidden_window());
  gl::MapPainter painter;
  gl::GridTexture grid;
  grid.upload(2, 3, std::vector<float>{-1, -2, -3, -4, -5, -6});
  gl::Framebuffer target(90, 60);
  target.bind();
  gl::MapColours c;
  c.scale.low = -8;
  c.scale.high = 0;
  painter.draw_grid(grid, std::vector<gl::MapQuad>{{0, 0, 90, 60, 0, 0, 3, 2, {}}}, c,
                    {90, 60, 0, 0, 90, 60});
  const gl::ReadPixels picture = target.read();
  for (int i = 0; i < 6; ++i) {
    const Rgb seen = picture.at(i % 3 * 30 + 15, i / 3 * 30 + 15);
    CHECK(difference(seen, colormap_at(Colormap::viridis, (8.0 - 1 - i) / 8)) <= kTolerance);
  }
}

TEST_CASE("what was kept of a picture is drawn again to the byte, within its quads alone") {
  const Window window(hidden_window());
  gl::MapPainter painter;
  gl::GridTexture grid;
  grid.upload(2, 3,
              std::vector<float>{-1, -2, std::numeric_limits<float>::infinity(), -4,
                                 -std::numeric_limits<float>::infinity(), -6});
  gl::MapColours c;
  c.scale.low = -8;
  c.scale.high = 0;
  // Not on whole pixels, clipped, and with a gap between them.
  const std::vector<gl::MapQuad> quads{{3.3f, 2.6f, 40.2f, 51.5f, 0, 0, 2, 2, {}},
                                       {47.7f, 2.6f, 120, 51.5f, 1, 0, 3, 2, {}}};
  const gl::PaintArea area{90, 60, 5, 4, 80, 48};
  const gl::Framebuffer target(90, 60);
  const auto clear = [&] {
    target.bind();
    glDisable(GL_SCISSOR_TEST);
    glClearColor(1, 0, 1, 1);
    glClear(GL_COLOR_BUFFER_BIT);
  };
  clear();
  painter.draw_grid(grid, quads, c, area);
  gl::KeptDrawing kept;
  kept.take(area.clip_x0, area.height - area.clip_y1, area.clip_x1 - area.clip_x0,
            area.clip_y1 - area.clip_y0);
  const gl::ReadPixels before = target.read();
  clear();
  painter.draw_kept(kept, quads, area);
  const gl::ReadPixels after = target.read();
  CHECK(before.pixels == after.pixels);
  // Drawn is what was to be: neither nothing nor everything.
  CHECK(after.at(43, 20) == Rgb{255, 0, 255});
  CHECK(after.at(85, 20) == Rgb{255, 0, 255});
  CHECK(difference(after.at(10, 20), colormap_at(Colormap::viridis, 7.0 / 8)) <= kTolerance);
}

namespace {

/// Tiles that are there at once.
class FullSource : public TileSource {
 public:
  MapGeometry geometry(const HeadId&) const override { return MapGeometry::of(4096, 4096); }
  void want(Wishes) override {}
  Answer find(const Ask& ask) const override {
    auto& tile = tiles_[std::get<TileId>(ask)];
    if (!tile) {
      auto made = std::make_shared<MapTile>();
      made->id = std::get<TileId>(ask);
      made->rows = made->cols = kTileSide;
      made->exact = true;
      made->max.assign(kTileSide * kTileSide, 0.5f);
      made->mean = made->max;
      tile = made;
    }
    return tile;
  }
  std::string problem(const Ask&) const override { return ""; }
  bool offers(const Ask&) const override { return false; }
  bool exact(const HeadId&) const override { return true; }
  TileSourceStatus status() const override { return {}; }

 private:
  mutable std::map<TileId, std::shared_ptr<const MapTile>> tiles_;
};

TileId tile_at(int64_t row, int64_t col) { return {{}, Quantity::weights, 0, row, col}; }

}  // namespace

TEST_CASE("textures stay within their memory and give up what was drawn longest ago") {
  const Window window(hidden_window());
  const FullSource source;
  TileTextures textures(3 * gl::TexturePool::kSlotBytes);
  CHECK_FALSE(
      textures.upload(source, std::vector{tile_at(0, 0), tile_at(0, 1), tile_at(0, 2)}, 1e3));
  CHECK(textures.has(tile_at(0, 0)));
  textures.use(tile_at(0, 0));
  textures.upload(source, std::vector{tile_at(1, 0)}, 1e3);
  CHECK(textures.has(tile_at(0, 0)));
  CHECK_FALSE(textures.has(tile_at(0, 1)));
  CHECK(textures.has(tile_at(1, 0)));
  CHECK(textures.pool().bytes() == 3 * gl::TexturePool::kSlotBytes);
  // Tiles that are there are not uploaded again, and those of one list do not push each other out.
  const int64_t uploads = textures.pool().uploads();
  textures.upload(source, std::vector{tile_at(1, 0), tile_at(0, 0)}, 1e3);
  CHECK(textures.pool().uploads() == uploads);
  textures.upload(source, std::vector{tile_at(5, 0), tile_at(5, 1), tile_at(5, 2), tile_at(5, 3)},
                  1e3);
  CHECK(textures.has(tile_at(5, 0)));
  CHECK_FALSE(textures.has(tile_at(5, 3)));
  // A frame that has no time left uploads one tile.
  textures.clear();
  CHECK(textures.upload(source, std::vector{tile_at(0, 0), tile_at(0, 1)}, 0));
  CHECK_FALSE(textures.has(tile_at(0, 1)));
}

TEST_CASE("of two ways to upload a tile the faster one is kept") {
  for (const UploadWay faster : {UploadWay::staging, UploadWay::interop}) {
    UploadChoice choice;
    int taken[2] = {};
    for (int i = 0; i < 2 * UploadChoice::kTrials; ++i) {
      CHECK_FALSE(choice.decided());
      const UploadWay way = choice.next();
      // The first upload sets things up, and now and then one is held up.
      const int turn = taken[static_cast<size_t>(way)]++;
      const double time = turn == 0 || turn == 3 ? 100 : way == faster ? 1 : 2;
      choice.measured(way, turn == 0 && way != faster ? 0 : time);
    }
    CHECK(taken[0] == taken[1]);
    CHECK(choice.decided());
    CHECK(choice.next() == faster);
    choice.measured(faster, 1000);
    CHECK(choice.next() == faster);
  }
}

TEST_CASE("an idle window draws nothing and uses no processor time") {
  HiddenApp hidden_app;
  ViewerApp& app = hidden_app.app;
  hidden_app.open_sample();
  REQUIRE(hidden_app.wait_for(WaitFor::idle));
  CHECK(app.exact());
  // A worker may still be about to say what it has done.
  for (const double settled = app.seconds() + 0.5; app.seconds() < settled;) app.step(0.05);
  const auto cpu_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const int64_t frames = app.counters().frames;
  const double cpu = cpu_seconds();
  const double end = app.seconds() + 3;
  while (app.seconds() < end) app.step(end - app.seconds());
  CHECK(app.counters().frames == frames);
  CHECK(cpu_seconds() - cpu < 0.03);
  // And it still wakes up.
  hidden_app.window.wake();
  CHECK(app.step(5));
  CHECK(app.counters().frames == frames + 1);
}

TEST_CASE("what is dropped on the window is opened, and what cannot be leaves the capture") {
  HiddenApp hidden_app;
  ViewerApp& app = hidden_app.app;
  GLFWwindow* const handle = glfwGetCurrentContext();
  // GLFW calls this function when the desktop says that files were dropped.
  const GLFWdropfun dropped = glfwSetDropCallback(handle, nullptr);
  REQUIRE(dropped);
  glfwSetDropCallback(handle, dropped);
  const auto drop = [&](const std::string& path) {
    const char* paths[] = {path.c_str()};
    dropped(handle, 1, paths);
  };
  const std::string capture = project_folder() + "/samples/moving-shapes";
  CHECK(app.document() == nullptr);
  drop(capture);
  REQUIRE(app.document() != nullptr);
  CHECK(app.document()->origin.path == capture);
  CHECK_FALSE(app.failed());
  drop(project_folder() + "/README.md");
  CHECK(app.failed());
  CHECK(app.document()->origin.path == capture);
  // The dialog goes with Esc, and the next drop is taken.
  app.press({Key::escape});
  CHECK_FALSE(app.failed());
  drop(capture);
  CHECK_FALSE(app.failed());
}

TEST_CASE("a filmstrip's frames fit and do not overlap") {
  for (const auto& [frames, height, width] : {std::tuple<int64_t, int64_t, int64_t>{7, 12, 12},
                                              {13, 30, 45},
                                              {33, 45, 80},
                                              {1, 90, 160}}) {
    const ScreenRect area{10, 20, 446, 380};
    const FilmLayout film = FilmLayout::fit(area, frames, height, width, 18, 8);
    CHECK(film.cell > 0);
    for (int64_t t = 0; t < frames; ++t) {
      const ScreenRect f = film.frame(t);
      CHECK(f.x0 >= area.x0);
      CHECK(f.x1 <= area.x1 + 1);
      CHECK(f.y1 <= area.y1 + 1);
      for (int64_t u = 0; u < t; ++u) {
        const ScreenRect g = film.frame(u);
        CHECK((f.x0 >= g.x1 || g.x0 >= f.x1 || f.y0 >= g.y1 || g.y0 >= f.y1));
      }
    }
  }
}
