// The query's row as a volume: how it stands before the eye, what a ray meets, what is kept of it.
#include <cmath>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/row/picture_rest.h"
#include "viewer/view/row/volume_camera.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr std::array<int64_t, 3> kSize{3, 5, 7};

VolumeCells random_cells(uint32_t seed) {
  std::mt19937 random(seed);
  VolumeCells cells{kSize, {}};
  for (int i = 0; i < 3 * 5 * 7; ++i) {
    cells.numbers.push_back(static_cast<uint8_t>(random() % 256));
  }
  return cells;
}

VolumePoint along(const VolumePoint& start, const VolumePoint& way, double s) {
  return {start.x + way.x * s, start.y + way.y * s, start.t + way.t * s};
}

/// The cell of a place, or nothing outside the volume.
std::optional<LatentCoord> cell_of(const VolumePoint& p) {
  const LatentCoord at{static_cast<int64_t>(std::floor(p.t)), static_cast<int64_t>(std::floor(p.y)),
                       static_cast<int64_t>(std::floor(p.x))};
  const bool within =
      at.t >= 0 && at.t < kSize[0] && at.y >= 0 && at.y < kSize[1] && at.x >= 0 && at.x < kSize[2];
  return within ? std::optional(at) : std::nullopt;
}

ViewLimits limits() { return three_calls(); }

}  // namespace

TEST_CASE("from the front, columns go to the right, rows down and the first frame is nearest") {
  VolumeLook look;
  look.azimuth = look.elevation = 0;
  const VolumeCamera camera(kSize, look, 400, 300);
  const PanePoint a = camera.project({0, 0, 0}), b = camera.project({7, 5, 0});
  CHECK(a.x < b.x);
  CHECK(a.y < b.y);
  CHECK(b.x - a.x == Approx(7 * camera.pixels()));
  CHECK(b.y - a.y == Approx(5 * camera.pixels()));
  CHECK(camera.way().t > 0);
  CHECK(camera.faces_eye(VolumeAxis::t, false));
  CHECK_FALSE(camera.faces_eye(VolumeAxis::t, true));
  // The eye goes up and sees the top; to the right, and sees the right side.
  look.elevation = 40;
  CHECK(VolumeCamera(kSize, look, 400, 300).faces_eye(VolumeAxis::y, false));
  look.azimuth = 40;
  CHECK(VolumeCamera(kSize, look, 400, 300).faces_eye(VolumeAxis::x, true));
}

TEST_CASE("a ray goes through all that is drawn where it begins") {
  for (const auto& [azimuth, elevation] : {std::pair(0.0, 0.0), std::pair(-35.0, 25.0),
                                           std::pair(130.0, -70.0), std::pair(90.0, 90.0)}) {
    VolumeLook look;
    look.azimuth = azimuth;
    look.elevation = elevation;
    look.zoom = 1.7;
    const VolumeCamera camera(kSize, look, 300, 200, 10);
    for (const VolumePoint& p :
         {VolumePoint{0, 0, 0}, VolumePoint{7, 5, 3}, VolumePoint{2, 4, 1}}) {
      const PanePoint at = camera.project(p);
      const VolumePoint start = camera.ray_start(at);
      const double s =
          ((p.x - start.x) * camera.way().x + (p.y - start.y) * camera.way().y +
           (p.t - start.t) * camera.way().t) /
          (std::pow(camera.way().x, 2) + std::pow(camera.way().y, 2) + std::pow(camera.way().t, 2));
      const VolumePoint met = along(start, camera.way(), s);
      CHECK(met.x == Approx(p.x).margin(1e-4));
      CHECK(met.y == Approx(p.y).margin(1e-4));
      CHECK(met.t == Approx(p.t).margin(1e-4));
      // It begins before the volume.
      CHECK(s > 0);
    }
    const VolumePoint here = camera.ray_start({50, 60}), right = camera.ray_start({51, 60});
    CHECK(right.x - here.x == Approx(camera.across().x).margin(1e-12));
    const VolumePoint below = camera.ray_start({50, 61});
    CHECK(below.y - here.y == Approx(camera.down().y).margin(1e-12));
    CHECK(below.t - here.t == Approx(camera.down().t).margin(1e-12));
  }
}

TEST_CASE("the outline has six of the twelve edges, and each axis is written along one of them") {
  const VolumeLook look;
  const VolumeCamera camera(kSize, look, 400, 300);
  const auto edges = volume_edges(camera, kSize);
  REQUIRE(edges.size() == 12);
  CHECK(std::count_if(edges.begin(), edges.end(), [](const VolumeEdge& e) { return e.outline; }) ==
        6);
  CHECK(std::count_if(edges.begin(), edges.end(), [](const VolumeEdge& e) { return e.hidden; }) ==
        3);
  for (const VolumeAxis axis : {VolumeAxis::t, VolumeAxis::y, VolumeAxis::x}) {
    const VolumeEdge* const edge = labelled_edge(camera, edges, axis);
    REQUIRE(edge != nullptr);
    CHECK(edge->along == axis);
    CHECK(edge->outline);
  }
  // Seen from the front the frames' edges are points.
  VolumeLook front;
  front.azimuth = front.elevation = 0;
  const VolumeCamera before(kSize, front, 400, 300);
  const auto seen = volume_edges(before, kSize);
  CHECK(labelled_edge(before, seen, VolumeAxis::t) == nullptr);
}

TEST_CASE("a ray meets the largest number on its way") {
  std::mt19937 random(7);
  int met = 0;
  for (int round = 0; round < 200; ++round) {
    const VolumeCells cells = random_cells(static_cast<uint32_t>(round));
    VolumeLook look;
    look.azimuth = static_cast<double>(random() % 360) - 180;
    look.elevation = static_cast<double>(random() % 180) - 90;
    const VolumeCamera camera(kSize, look, 200, 150);
    const PanePoint at{static_cast<double>(random() % 2000) / 10,
                       static_cast<double>(random() % 1500) / 10};
    const VolumePoint start = camera.ray_start(at);
    const uint8_t least = 128;
    const auto found = seen_cell(cells, start, camera.way(), least, std::nullopt);
    // By small steps, which may miss a corner that the ray only touches.
    uint8_t largest = 0;
    for (double s = 0; s < 60; s += 1e-3) {
      const auto cell = cell_of(along(start, camera.way(), s));
      if (cell && cells.at(*cell) >= least) largest = std::max(largest, cells.at(*cell));
    }
    if (largest == 0) continue;
    REQUIRE(found);
    CHECK(cells.at(*found) >= largest);
    met += cells.at(*found) == largest ? 1 : 0;
  }
  CHECK(met > 60);
}

TEST_CASE("a plane cuts away what lies before it, and is seen itself") {
  VolumeCells cells{kSize, std::vector<uint8_t>(3 * 5 * 7, 10)};
  cells.numbers[0 * 35 + 2 * 7 + 3] = 250;  // frame 0, before the plane
  cells.numbers[2 * 35 + 2 * 7 + 3] = 240;  // frame 2, behind it
  VolumeLook look;
  look.azimuth = look.elevation = 0;
  const VolumeCamera camera(kSize, look, 400, 300);
  const VolumePoint start = camera.ray_start(camera.project({3.5, 2.5, 1}));
  CHECK(seen_cell(cells, start, camera.way(), 4, std::nullopt) == LatentCoord{0, 2, 3});
  const VolumeSlice middle{VolumeAxis::t, 1};
  CHECK(seen_cell(cells, start, camera.way(), 4, middle) == LatentCoord{1, 2, 3});
  // A cell without a value is seen on a plane, and nowhere else.
  cells.numbers[1 * 35 + 2 * 7 + 3] = VolumeCells::kMasked;
  CHECK(seen_cell(cells, start, camera.way(), 200, middle) == LatentCoord{1, 2, 3});
  // From behind the other side is cut away.
  look.azimuth = 180;
  const VolumeCamera behind(kSize, look, 400, 300);
  const VolumePoint other = behind.ray_start(behind.project({3.5, 2.5, 1}));
  CHECK(seen_cell(cells, other, behind.way(), 4, middle) == LatentCoord{1, 2, 3});
  CHECK(seen_cell(cells, other, behind.way(), 245, std::nullopt) == LatentCoord{0, 2, 3});
  CHECK_FALSE(seen_cell(cells, behind.ray_start({-500, 0}), behind.way(), 4, middle));
}

TEST_CASE("numbers of cells are places on the colours") {
  CHECK(VolumeCells::number_of(0) == 4);
  CHECK(VolumeCells::number_of(1) == 255);
  CHECK(VolumeCells::number_of(-4) == 4);
  CHECK(VolumeCells::number_of(7) == 255);
  CHECK(VolumeCells::least_of(0) == 4);
  CHECK(VolumeCells::least_of(0.5) == 130);
  CHECK(VolumeCells::number_of(0.5) >= VolumeCells::least_of(0.5));
  CHECK(VolumeCells::number_of(0.49) < VolumeCells::least_of(0.5));
}

TEST_CASE("a picture that goes on changing is drawn coarsely, and in full when it rests") {
  using Draw = PictureRest::Draw;
  PictureRest rest;
  CHECK(rest.next(true, false, 10) == Draw::whole);
  CHECK(rest.next(false, false, 10.02) == Draw::kept);
  CHECK(rest.wait(10.02) < 0);
  // One change long after the last is no movement; two at once are.
  CHECK(rest.next(true, false, 20) == Draw::whole);
  CHECK(rest.next(true, false, 20.05) == Draw::coarse);
  CHECK(rest.wait(20.05) == Approx(PictureRest::kRestSeconds));
  CHECK(rest.next(false, false, 20.1) == Draw::kept);
  CHECK(rest.next(false, false, 20.05 + PictureRest::kRestSeconds) == Draw::whole);
  CHECK(rest.wait(21) < 0);
  CHECK(rest.next(true, true, 30) == Draw::coarse);
}

TEST_CASE("a volume's look is checked, kept and undone") {
  ViewState state = opened_view(limits());
  VolumeLook look;
  look.threshold = 2;
  CHECK(usage_text([&] { apply_action(state, action::SetVolume{look}, limits()); }) ==
        "volume threshold 2: expected 0 to 1");
  look = {};
  look.zoom = 100;
  CHECK(has(usage_text([&] { apply_action(state, action::SetVolume{look}, limits()); }),
            "volume zoom 100: expected 0.25 to 16"));
  look = turned({}, 200, 95, 99);
  CHECK(look.azimuth == Approx(-160));
  CHECK(look.elevation == 90);
  CHECK(look.zoom == kMostVolumeZoom);
  check_volume_look(look);

  // Film and volume share a pane.
  look = {};
  look.shown = true;
  state = apply_action(state, action::Maximise{ViewPane::query}, limits());
  state = apply_action(state, action::SetVolume{look}, limits());
  CHECK(state.maximised == ViewPane::volume);
  look.shown = false;
  CHECK(apply_action(state, action::SetVolume{look}, limits()).maximised == ViewPane::query);
  CHECK_FALSE(apply_action(state, action::Maximise{ViewPane::query}, limits()).volume.shown);
  CHECK(apply_action(opened_view(limits()), action::Maximise{ViewPane::volume}, limits())
            .volume.shown);

  // A drag is one step of undo, a click another.
  ViewHistory history(opened_view(limits()));
  look = {};
  look.shown = true;
  history.apply(action::SetVolume{look}, limits(), 1);
  for (int i = 1; i <= 5; ++i) {
    history.apply(action::SetVolume{turned(look, 10.0 * i, 0, 1), true}, limits(), 1 + i * 0.1);
  }
  CHECK(history.now().volume.azimuth == Approx(50));
  REQUIRE(history.undo());
  CHECK(history.now().volume == look);
  REQUIRE(history.undo());
  CHECK(history.now().volume == VolumeLook{});
}

TEST_CASE("planes are those of the grid") {
  const TokenGrid grid = TokenGrid::video(26, {2, 3, 4}, 2, TextPlace::start);
  check_volume_slice(grid, {VolumeAxis::x, 3});
  CHECK(usage_text([&] {
          check_volume_slice(grid, {VolumeAxis::t, 2});
        }) == "volume slice t 2: outside the grid (valid 0 to 1)");
  CHECK(usage_text([&] {
          check_volume_slice(TokenGrid::unknown(26), {VolumeAxis::y, 0});
        }) == "volume slice y 0: no grid is known");
}
