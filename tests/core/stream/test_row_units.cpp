// A stream that several processes share: cut into units, each computed once by whoever asked first.
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/stream/row_units.h"
#include "core/stream/streaming_engine.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Key = std::tuple<int64_t, int64_t, int64_t>;  // task, first row, first column

/// Keeps the entries of every tile.
class KeepTiles final : public TileSink {
 public:
  explicit KeepTiles(TileRequest request) : request_(request) {}
  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    std::string bytes;
    for (const std::byte* chunk : tile.chunks) {
      bytes.append(reinterpret_cast<const char*>(chunk),
                   static_cast<size_t>(request_.chunk_rows * request_.chunk_cols * 4));
    }
    const std::lock_guard lock(mutex_);
    ++taken_;
    tiles_[{tile.task_index, tile.rows.begin, tile.cols.begin}] = bytes;
    rows_ += tile.cols.begin == 0 ? tile.rows.size() : 0;
  }
  void end() override { ended_ = true; }
  const std::map<Key, std::string>& tiles() const { return tiles_; }
  size_t taken() const { return taken_; }
  int64_t rows() const { return rows_; }
  bool ended() const { return ended_; }

 private:
  const TileRequest request_;
  std::mutex mutex_;
  std::map<Key, std::string> tiles_;
  size_t taken_ = 0;
  int64_t rows_ = 0;
  bool ended_ = false;
};

}  // namespace

TEST_CASE("units are runs of whole chunks of rows, in the stream's order") {
  std::vector<int64_t> list(50);
  std::iota(list.begin(), list.end(), 7);
  const std::vector<RowNorm> norms(50);
  const std::vector<HeadTask> tasks{{nullptr, 0, 0, {100, 1100}, {}, {0, 9}},
                                    {nullptr, 0, 1, {}, list, {0, 9}, norms}};
  for (const int64_t least : {0, 1, 2, 3, 8, 1000}) {
    const RowUnits units = cut_into_units(tasks, 16, least);
    INFO(least << " units wanted, " << units.tasks.size() << " made");
    CHECK(std::ssize(units.tasks) >= std::min<int64_t>(least, 6));
    REQUIRE(units.tasks.size() == units.places.size());
    std::vector<int64_t> next(2, 0);
    int64_t task = 0;
    for (size_t u = 0; u < units.tasks.size(); ++u) {
      const HeadTask& unit = units.tasks[u];
      const RowUnits::Place& place = units.places[u];
      CHECK(place.task >= task);
      task = place.task;
      CHECK(place.first_row == next[static_cast<size_t>(task)]);
      CHECK(place.first_row % 16 == 0);
      for (int64_t i = 0; i < unit.num_rows(); ++i) {
        CHECK(unit.row_at(i) == tasks[static_cast<size_t>(task)].row_at(place.first_row + i));
      }
      CHECK(unit.known_norms.size() == (task == 1 ? static_cast<size_t>(unit.num_rows()) : 0));
      next[static_cast<size_t>(task)] += unit.num_rows();
    }
    CHECK(next == std::vector<int64_t>{1000, 50});
  }
}

TEST_CASE("streams that share their units compute every tile once, with the same bits") {
  const AttentionProblem problem = rule_problem(1, 3, 90, 70, 8);
  std::vector<HeadTask> tasks;
  for (int64_t head = 0; head < 3; ++head) {
    tasks.push_back({&problem, 0, head, {0, 90}, {}, {0, 70}});
  }
  const TileRequest request{.norms = false, .chunk_rows = 16, .chunk_cols = 32};
  const FakeBackend backend;
  MemoryBudget budget(int64_t{1} << 30);
  KeepTiles whole(request);
  StreamingEngine(backend, budget)
      .run(tasks, plan_tiles(tasks, request, backend, budget.available(), 2), whole);
  REQUIRE(whole.ended());

  const RowUnits units = cut_into_units(tasks, request.chunk_rows, 12);
  std::atomic<int64_t> counter{0};
  KeepTiles shared(request);
  std::atomic<int> complete{0};
  {
    std::vector<std::jthread> processes;
    for (int i = 0; i < 3; ++i) {
      processes.emplace_back([&] {
        MemoryBudget own(int64_t{1} << 30);
        UnitSink sink(shared, tasks, units);
        StreamControl control;
        control.next_task = [&]() -> std::optional<int64_t> {
          const int64_t unit = counter++;
          return unit < std::ssize(units.tasks) ? std::optional(unit) : std::nullopt;
        };
        const TilePlan plan = plan_tiles(units.tasks, request, backend, own.available(), 2);
        complete += StreamingEngine(backend, own).run(units.tasks, plan, sink, control) ? 1 : 0;
      });
    }
  }
  CHECK(complete == 3);
  CHECK_FALSE(shared.ended());  // no process knows when all are
  CHECK(shared.taken() == shared.tiles().size());
  CHECK(shared.rows() == 3 * 90);
  CHECK(shared.tiles() == whole.tiles());
}

TEST_CASE("a share that is stopped, or cannot ask for more, is not complete") {
  const AttentionProblem problem = rule_problem(1, 1, 90, 70, 8);
  const std::vector<HeadTask> tasks{{&problem, 0, 0, {0, 90}, {}, {0, 70}}};
  const TileRequest request{.norms = false, .chunk_rows = 16, .chunk_cols = 32};
  const FakeBackend backend;
  MemoryBudget budget(int64_t{1} << 30);
  const RowUnits units = cut_into_units(tasks, request.chunk_rows, 4);
  const TilePlan plan = plan_tiles(units.tasks, request, backend, budget.available(), 2);
  KeepTiles kept(request);
  UnitSink sink(kept, tasks, units);
  std::stop_source stop;
  StreamControl control;
  control.stop = stop.get_token();
  int64_t next = 0;
  control.next_task = [&]() -> std::optional<int64_t> {
    if (next == 2) stop.request_stop();
    return next++;
  };
  CHECK_FALSE(StreamingEngine(backend, budget).run(units.tasks, plan, sink, control));
  control = {};
  control.next_task = []() -> std::optional<int64_t> { throw std::runtime_error("no counter"); };
  CHECK_THROWS_WITH(StreamingEngine(backend, budget).run(units.tasks, plan, sink, control),
                    "no counter");
  control.next_task = []() -> std::optional<int64_t> { return std::nullopt; };
  CHECK(StreamingEngine(backend, budget).run(units.tasks, plan, sink, control));
}
