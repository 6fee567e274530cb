// How long the window waits for its tiles: bench_view CAPTURE [HEAD] [THREADS] [BACKEND] prints the
// times of one head of a capture's first call and asserts nothing.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/backend_factory.h"
#include "viewer/tiles/tile_service.h"

using namespace attnscope;

namespace {

constexpr int64_t kHoveredRows = 100;

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Sleeps until the service wakes it, as the window does.
class Waiter {
 public:
  void wake() {
    const std::lock_guard lock(mutex_);
    ++wakes_;
    woken_.notify_all();
  }
  /// Milliseconds until `ready`.
  double wait(const std::function<bool()>& ready) {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    while (true) {
      const int64_t seen = wakes_;
      lock.unlock();
      if (ready()) return milliseconds_since(start);
      lock.lock();
      woken_.wait_for(lock, std::chrono::milliseconds(5), [&] { return wakes_ != seen; });
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  int64_t wakes_ = 0;
};

void print_lines(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%-34s median %7.1f ms   nine of ten %7.1f ms   worst %7.1f ms   (%zu)\n", what,
              times[times.size() / 2], times[(times.size() * 9 + 9) / 10 - 1], times.back(),
              times.size());
}

void measure(const Capture& capture, const HeadId& head, int threads, BackendKind kind) {
  const auto backend = make_backend(kind, {threads});
  Waiter waiter;
  TileService::Settings settings;
  settings.threads = threads;
  const auto start = Clock::now();
  TileService service(map_calls(capture), *backend, settings, [&] { waiter.wake(); });
  const MapGeometry geometry = service.geometry(head);
  std::printf("%s, %lld x %lld, base level %d, top level %d\n", backend->description().c_str(),
              static_cast<long long>(geometry.rows), static_cast<long long>(geometry.cols),
              geometry.base_level, geometry.top_level);
  const Quantity weights = Quantity::weights;
  const TileId top{head, weights, geometry.top_level, 0, 0};
  const Wish overview{top}, pass{top, Stage::exact};
  service.want({overview, pass});
  waiter.wait([&] { return find(service, top) != nullptr; });
  std::printf("%-34s %7.1f ms\n", "first sampled overview", milliseconds_since(start));

  // A hand moves the mouse for a while, and rests.
  std::vector<double> rows;
  for (int64_t i = 0; i < kHoveredRows && !service.exact(head); ++i) {
    const int64_t row = i * 7919 % geometry.rows;
    const LineRequest line{head, weights, false, {row}};
    service.want({Wish{line}, overview, pass});
    rows.push_back(waiter.wait([&] { return find(service, line) != nullptr; }));
    // A mouse reports a hundred times a second at most.
    waiter.wait([&, from = Clock::now()] { return milliseconds_since(from) > 20; });
  }
  if (!rows.empty()) print_lines("a row while the pass runs", rows);
  waiter.wait([&] { return service.exact(head); });
  std::printf("%-34s %7.1f ms\n", "exact overview", milliseconds_since(start));

  const auto tile_time = [&](const char* what, const TileId& id) {
    service.want({Wish{id}});
    std::printf("%-34s %7.1f ms\n", what,
                waiter.wait([&] { return find(service, id) != nullptr; }));
  };
  const int middle = std::max(0, geometry.base_level - 1);
  tile_time("a tile of level 0", {head, weights, 0, geometry.tile_rows(0) / 2, 3});
  tile_time("a tile of the level below the base",
            {head, weights, middle, geometry.tile_rows(middle) / 2, 1});
  std::vector<double> columns;
  for (int64_t i = 0; i < 10; ++i) {
    const LineRequest line{head, weights, true, {(i * 7919) % geometry.cols}};
    service.want({Wish{line}});
    columns.push_back(waiter.wait([&] { return find(service, line) != nullptr; }));
  }
  print_lines("a column, norms known", columns);
  std::vector<double> probes;
  for (int64_t i = 0; i < 20; ++i) {
    const ProbeRequest probe{head, i * 7919 % geometry.rows, i};
    service.want({Wish{probe}});
    probes.push_back(waiter.wait([&] { return find(service, probe) != nullptr; }));
  }
  print_lines("a probe", probes);
  const TileSourceStatus status = service.status();
  std::printf("%-34s %7.1f MiB\n", "held", static_cast<double>(status.host_bytes) / (1 << 20));
  if (!status.problem.empty()) std::printf("problem: %s\n", status.problem.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_view CAPTURE [HEAD] [THREADS] [BACKEND]\n");
    return 2;
  }
  try {
    const Capture capture = Capture::open(argv[1]);
    const HeadId head{0, 0, argc > 2 ? std::atoll(argv[2]) : 0};
    measure(capture, head, argc > 3 ? std::atoi(argv[3]) : 0,
            parse_backend(argc > 4 ? argv[4] : "auto"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_view: %s\n", error.what());
    return 1;
  }
  return 0;
}
