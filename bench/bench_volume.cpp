// How long a volume takes to draw: bench_volume [FRAMES HEIGHT WIDTH [COLUMNS ROWS]] turns one of
// random numbers with a bright place in its middle, and prints the times of a picture as large as
// the pane and of the one with half its pixels along a side. Asserts nothing.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <vector>

#include "viewer/gl/volume_painter.h"
#include "viewer/screen/window.h"
#include "viewer/view/row/volume_camera.h"

using namespace attnscope;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Of all threads: what drawing in software takes from everybody.
double processor_milliseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

/// A picture's time, and the processors' time in it.
struct Taken {
  double milliseconds = 0, processors = 0;
};

VolumeCells make_cells(const std::array<int64_t, 3>& size) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0.35, 0.12);
  VolumeCells cells{size, {}};
  for (int64_t t = 0; t < size[0]; ++t) {
    for (int64_t y = 0; y < size[1]; ++y) {
      for (int64_t x = 0; x < size[2]; ++x) {
        const auto off = [&](int64_t at, size_t axis) {
          return (static_cast<double>(at) + 0.5) / static_cast<double>(size[axis]) - 0.5;
        };
        const double away = std::hypot(off(t, 0), off(y, 1), off(x, 2));
        cells.numbers.push_back(
            VolumeCells::number_of(noise(random) + 0.5 * std::exp(-30 * away * away)));
      }
    }
  }
  return cells;
}

gl::VolumeView::Vector floats(const VolumePoint& p, double by = 1) {
  return {static_cast<float>(p.x * by), static_cast<float>(p.y * by), static_cast<float>(p.t * by)};
}

gl::VolumeView view_of(const VolumeCells& cells, const VolumeLook& look, int width, int height,
                       int by) {
  const VolumeCamera camera(cells.size, look, width, height);
  gl::VolumeView view;
  view.start = floats(camera.ray_start({0, 0}));
  view.across = floats(camera.across(), by);
  view.down = floats(camera.down(), by);
  view.way = floats(camera.way());
  view.emission = look.mode == VolumeMode::emission;
  view.least = VolumeCells::least_of(look.threshold);
  return view;
}

/// Pictures of the volume from all sides; how long each took until the driver was done.
std::vector<Taken> turn(gl::VolumePainter& painter, const VolumeCells& cells, VolumeLook look,
                        int width, int height, int by) {
  std::vector<Taken> times;
  for (int turn = 0; turn < 24; ++turn) {
    look.azimuth = -180 + 15.0 * turn;
    look.elevation = 40 * std::sin(turn);
    const double before = processor_milliseconds();
    const auto start = Clock::now();
    painter.draw(width / by, height / by, view_of(cells, look, width, height, by), {});
    glFinish();
    times.push_back({milliseconds_since(start), processor_milliseconds() - before});
  }
  return times;
}

void print_times(const char* what, std::vector<Taken> times) {
  double processors = 0;
  for (const Taken& each : times) processors += each.processors / static_cast<double>(times.size());
  std::sort(times.begin(), times.end(),
            [](const Taken& a, const Taken& b) { return a.milliseconds < b.milliseconds; });
  std::printf("  %-28s median %6.1f ms   worst %6.1f ms   processors %6.1f ms\n", what,
              times[times.size() / 2].milliseconds, times.back().milliseconds, processors);
}

void measure(const std::array<int64_t, 3>& size, int width, int height) {
  Window::Settings settings;
  settings.visible = false;
  const Window window(settings);
  const VolumeCells cells = make_cells(size);
  std::printf("%s\n%lld x %lld x %lld cells, %d x %d pixels\n",
              reinterpret_cast<const char*>(glGetString(GL_RENDERER)),
              static_cast<long long>(size[0]), static_cast<long long>(size[1]),
              static_cast<long long>(size[2]), width, height);
  const auto begun = Clock::now();
  gl::VolumePainter painter;
  painter.upload({static_cast<int>(size[0]), static_cast<int>(size[1]), static_cast<int>(size[2])},
                 cells.numbers);
  painter.draw(width, height, view_of(cells, {}, width, height, 1), {});
  glFinish();
  std::printf("  %-28s %13.1f ms\n", "shader, upload, first", milliseconds_since(begun));
  for (const VolumeMode mode : {VolumeMode::maximum, VolumeMode::emission}) {
    for (const double threshold : {0.0, 0.5}) {
      VolumeLook look;
      look.mode = mode;
      look.threshold = threshold;
      for (const int by : {1, 2}) {
        char name[64];
        std::snprintf(name, sizeof name, "%s, from %.1f, %s",
                      mode == VolumeMode::maximum ? "max" : "emission", threshold,
                      by == 1 ? "whole" : "moving");
        print_times(name, turn(painter, cells, look, width, height, by));
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, int64_t otherwise) {
    return argc > at ? std::atoll(argv[at]) : otherwise;
  };
  const std::array<int64_t, 3> size{number(1, 13), number(2, 30), number(3, 45)};
  const auto width = static_cast<int>(number(4, 1256)), height = static_cast<int>(number(5, 560));
  if (*std::min_element(size.begin(), size.end()) < 1 || width < 2 || height < 2) {
    std::fprintf(stderr, "usage: bench_volume [FRAMES HEIGHT WIDTH [COLUMNS ROWS]]\n");
    return 2;
  }
  try {
    measure(size, width, height);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_volume: %s\n", error.what());
    return 1;
  }
  return 0;
}
