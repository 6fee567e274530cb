// Needs a display: run by ctest under xvfb-run.
#include <random>

#include "core/base/dtype.h"
#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "viewer/gl/picture_texture.h"
#include "viewer/gl/volume_painter.h"
#include "viewer/view/row/volume_camera.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr std::array<int64_t, 3> kSize{5, 9, 6};

gl::VolumeView::Vector floats(const VolumePoint& p) {
  return {static_cast<float>(p.x), static_cast<float>(p.y), static_cast<float>(p.t)};
}

VolumeCells random_cells(uint32_t seed) {
  std::mt19937 random(seed);
  VolumeCells cells{kSize, {}};
  for (int64_t i = 0; i < kSize[0] * kSize[1] * kSize[2]; ++i) {
    // Most of it is empty, as rows are.
    cells.numbers.push_back(static_cast<uint8_t>(random() % 4 == 0 ? random() % 256 : 4));
  }
  return cells;
}

struct Volume {
  gl::VolumePainter painter;
  VolumeCells cells;
  gl::VolumeColours colours{Colormap::viridis, {0, 0, 1}, {1, 0, 1}, {1, 0, 1}, {0, 1, 1}};

  explicit Volume(uint32_t seed) : cells(random_cells(seed)) {
    painter.upload(
        {static_cast<int>(kSize[0]), static_cast<int>(kSize[1]), static_cast<int>(kSize[2])},
        cells.numbers);
  }
  gl::ReadPixels draw(const VolumeCamera& camera, const VolumeLook& look, int width, int height,
                      GLuint picture = 0) {
    gl::VolumeView view;
    view.start = floats(camera.ray_start({0, 0}));
    view.across = floats(camera.across());
    view.down = floats(camera.down());
    view.way = floats(camera.way());
    view.emission = look.mode == VolumeMode::emission;
    view.least = VolumeCells::least_of(look.threshold);
    if (look.slice) {
      view.slice_axis = 2 - static_cast<int>(look.slice->axis);
      view.slice_at = static_cast<int>(look.slice->at);
    }
    painter.draw(width, height, view, colours, picture);
    return painter.framebuffer().read();
  }
  Rgb colour_of(uint8_t number) const {
    if (number == VolumeCells::kNothing) return {0, 0, 255};
    if (number == VolumeCells::kMasked) return {255, 0, 255};
    return colormap_at(colours.map, (number - 4) / 251.0);
  }
};

int difference(Rgb a, Rgb b) {
  return std::max({std::abs(a.r - b.r), std::abs(a.g - b.g), std::abs(a.b - b.b)});
}

}  // namespace

TEST_CASE("every pixel of a volume has the colour of the cell that its ray meets") {
  const Window window(hidden_window());
  std::mt19937 random(3);
  for (uint32_t round = 0; round < 12; ++round) {
    Volume volume(round);
    VolumeLook look;
    look.azimuth = static_cast<double>(random() % 360) - 180;
    look.elevation = static_cast<double>(random() % 180) - 90;
    look.threshold = (round % 4) / 4.0;
    if (round % 3 == 1) look.slice = VolumeSlice{static_cast<VolumeAxis>(round % 2), 2};
    constexpr int kWidth = 131, kHeight = 97;
    const VolumeCamera camera(kSize, look, kWidth, kHeight);
    const gl::ReadPixels picture = volume.draw(camera, look, kWidth, kHeight);
    int seen = 0, wrong = 0;
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const auto cell =
            seen_cell(volume.cells, camera.ray_start({x + 0.5, y + 0.5}), camera.way(),
                      VolumeCells::least_of(look.threshold), look.slice);
        const uint8_t number = cell ? volume.cells.at(*cell) : 0;
        // Missing and evicted cells of a plane are hatched.
        if (number == VolumeCells::kMissing || number == VolumeCells::kEvicted) continue;
        seen += cell ? 1 : 0;
        const Rgb expected = cell ? volume.colour_of(number) : Rgb{0, 0, 0};
        wrong += difference(picture.at(x, y), expected) > 1 ? 1 : 0;
      }
    }
    INFO("round " << round << ": " << wrong << " of " << seen);
    CHECK(seen > 300);
    // Rays that touch an edge may go either side of it.
    CHECK(wrong * 100 < seen);
  }
}

TEST_CASE("a plane of a frame shows the picture that it is given, the right way round") {
  const Window window(hidden_window());
  Volume volume(2);
  std::replace(volume.cells.numbers.begin(), volume.cells.numbers.end(),
               uint8_t{VolumeCells::kEvicted}, uint8_t{9});
  volume.cells.numbers[(2 * 9 + 1) * 6 + 4] = VolumeCells::kEvicted;
  volume.painter.upload({5, 9, 6}, volume.cells.numbers);
  // A quarter of the picture each: red and green above, blue and white below.
  const Rgb quarters[2][2] = {{{255, 0, 0}, {0, 255, 0}}, {{0, 0, 255}, {255, 255, 255}}};
  Canvas canvas(60, 90, {0, 0, 0});
  for (int y = 0; y < 90; ++y) {
    for (int x = 0; x < 60; ++x) canvas.row(y)[static_cast<size_t>(x)] = quarters[y / 45][x / 30];
  }
  gl::PictureTexture picture;
  picture.resize(60, 90);
  picture.update(0, 0, canvas);
  VolumeLook look;
  look.azimuth = 30;
  look.elevation = 20;
  look.slice = VolumeSlice{VolumeAxis::t, 2};
  constexpr int kSide = 128;
  const VolumeCamera camera(kSize, look, kSide, kSide);
  // Beside the plane, rays go through what is left of the frame behind it.
  const auto meets_plane = [&](const VolumePoint& start) {
    const double way = (look.slice->at + 0.5 - start.t) / camera.way().t;
    const double across = start.x + way * camera.way().x, down = start.y + way * camera.way().y;
    return across > 0 && across < kSize[2] && down > 0 && down < kSize[1];
  };
  const gl::ReadPixels drawn = volume.draw(camera, look, kSide, kSide, picture.name());
  std::array<int, 4> seen{};
  int wrong = 0, evicted = 0;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const VolumePoint start = camera.ray_start({x + 0.5, y + 0.5});
      const auto cell = seen_cell(volume.cells, start, camera.way(),
                                  VolumeCells::least_of(look.threshold), look.slice);
      if (!meets_plane(start)) continue;
      // The halves meet within row 4, and colours mix there.
      if (!cell || cell->t != 2 || cell->y == 4 || cell->x == 2 || cell->x == 3) continue;
      if (volume.cells.at(*cell) == VolumeCells::kEvicted) {
        evicted += drawn.at(x, y) == quarters[0][1] ? 0 : 1;
        continue;
      }
      const size_t below = cell->y > 4 ? 1 : 0, right = cell->x > 2 ? 1 : 0;
      ++seen[2 * below + right];
      wrong += difference(drawn.at(x, y), quarters[below][right]) > 1 ? 1 : 0;
    }
  }
  INFO(wrong << " wrong");
  for (const int count : seen) CHECK(count > 100);
  CHECK(wrong <= 10);
  CHECK(evicted > 0);
}

TEST_CASE("blocks have the largest numbers of their cells, also at the far sides") {
  const VolumeCells cells = random_cells(1);
  const auto maxima = gl::block_maxima({5, 9, 6}, cells.numbers);
  REQUIRE(maxima.size() == 2 * 3 * 2);
  for (int64_t t = 0; t < 5; ++t) {
    for (int64_t y = 0; y < 9; ++y) {
      for (int64_t x = 0; x < 6; ++x) {
        const auto block = static_cast<size_t>((t / 4 * 3 + y / 4) * 2 + x / 4);
        CHECK(maxima[block] >= cells.at({t, y, x}));
      }
    }
  }
  CHECK(*std::max_element(maxima.begin(), maxima.end()) ==
        *std::max_element(cells.numbers.begin(), cells.numbers.end()));
}

TEST_CASE("what is in front hides more, the larger it is") {
  const Window window(hidden_window());
  Volume volume(1);
  VolumeLook look;
  look.mode = VolumeMode::emission;
  look.azimuth = look.elevation = 0;
  look.threshold = 0;
  const VolumeCamera camera(kSize, look, 64, 64);
  const auto middle = [&](uint8_t front) {
    std::fill(volume.cells.numbers.begin(), volume.cells.numbers.end(), uint8_t{130});
    std::fill_n(volume.cells.numbers.begin(), 9 * 6, front);
    volume.painter.upload({5, 9, 6}, volume.cells.numbers);
    return volume.draw(camera, look, 64, 64).at(32, 32);
  };
  const Rgb behind = volume.colour_of(130), bright = volume.colour_of(255);
  CHECK(difference(middle(255), bright) < difference(middle(200), bright));
  // Nothing in front: the colour of what stands behind alone.
  CHECK(difference(middle(0), behind) <= 2);
  CHECK(difference(middle(4), behind) <= 2);
}

TEST_CASE("the volume is turned by dragging, and a click on it picks a token") {
  HiddenApp hidden(false);
  hidden.open_sample();
  REQUIRE(hidden.force_size({1000, 700}));
  hidden.press("V");
  REQUIRE(hidden.state().volume.shown);
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  GLFWwindow* const handle = glfwGetCurrentContext();
  const GLFWcursorposfun moved = glfwSetCursorPosCallback(handle, nullptr);
  glfwSetCursorPosCallback(handle, moved);
  const GLFWmousebuttonfun button = glfwSetMouseButtonCallback(handle, nullptr);
  glfwSetMouseButtonCallback(handle, button);
  const auto cells = hidden.app.labels().find("Volume/Cells");
  REQUIRE(cells);
  const float x = (cells->x0 + cells->x1) / 2, y = (cells->y0 + cells->y1) / 2;
  const VolumeLook before = hidden.state().volume;
  moved(handle, x, y);
  hidden.settle();
  // The real mouse stands still: moves between two buttons are what GLFW's callbacks tell.
  button(handle, GLFW_MOUSE_BUTTON_LEFT, GLFW_PRESS, 0);
  moved(handle, x + 50, y + 20);
  button(handle, GLFW_MOUSE_BUTTON_LEFT, GLFW_RELEASE, 0);
  hidden.settle();
  const VolumeLook after = hidden.state().volume;
  CHECK(after.azimuth == Approx(before.azimuth - 20));
  CHECK(after.elevation == Approx(before.elevation + 8));
  CHECK_FALSE(hidden.state().query);
  // One step of undo for all of the drag.
  hidden.press("Ctrl+Z");
  CHECK(hidden.state().volume == before);
  // A click picks what its ray meets.
  moved(handle, x, y);
  hidden.settle();
  button(handle, GLFW_MOUSE_BUTTON_LEFT, GLFW_PRESS, 0);
  button(handle, GLFW_MOUSE_BUTTON_LEFT, GLFW_RELEASE, 0);
  hidden.settle();
  CHECK(hidden.state().query);
  CHECK(hidden.state().volume == before);
}

TEST_CASE("a volume at rest is drawn once, and no frame is due") {
  HiddenApp hidden;
  hidden.open_sample();
  hidden.press("V");
  REQUIRE(hidden.wait_for(WaitFor::idle));
  hidden.settle();
  const int64_t frames = hidden.app.counters().frames;
  const double limit = hidden.app.seconds() + 1;
  while (hidden.app.seconds() < limit) hidden.app.step(0.1);
  CHECK(hidden.app.counters().frames == frames);
}
