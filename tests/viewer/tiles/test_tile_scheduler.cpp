#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/products/row_mean.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/service_harness.h"
#include "tests/support/waiting.h"
#include "tests/support/wishes.h"
#include "viewer/tiles/computed_maps.h"
#include "viewer/tiles/tile_scheduler.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 0, 0};
/// Base level 1: tiles of level 0 are computed one by one.
const TileId kFine{kHead, Quantity::weights, 0, 3, 4};

std::vector<MapCall> calls_of(const AttentionProblem& problem) {
  return {{std::shared_ptr<const AttentionProblem>(&problem, [](auto*) {}), nullptr}};
}

/// A scheduler whose pieces are run one by one by the test.
struct Steps {
  explicit Steps(const AttentionProblem& problem, int64_t memory = int64_t{256} << 20)
      : scheduler(computed_maps(calls_of(problem)), memory),
        scratch(backend, int64_t{8} << 20, [&](int64_t bytes, std::string_view purpose) {
          return scheduler.reserve(bytes, purpose);
        }) {}

  void run(const Assignment& next) {
    HeadCache& head = *next.head;
    if (!next.piece) {
      auto map = std::make_shared<BoundMap>();
      map->id = head.id;
      map->problem = head.problem;
      map->head = backend.bind(*head.problem, head.id.batch, head.id.head);
      return scheduler.finish_binding(head, map);
    }
    scratch.bind_to(next.bound);
    const Completion take_in = (*next.piece)(&scratch);
    scratch.bind_to(nullptr);
    scheduler.finish(next, take_in);
  }

  /// Binds the heads that come first.
  Assignment bound_choice() {
    while (true) {
      auto next = scheduler.choose();
      REQUIRE(next);
      if (next->piece) return *next;
      run(*next);
    }
  }

  int run_all() {
    int pieces = 0;
    for (auto next = scheduler.choose(); next; next = scheduler.choose(), ++pieces) run(*next);
    return pieces;
  }

  template <class Asked>
  AnswerTo<Asked> found(const Asked& asked) {
    return std::get<AnswerTo<Asked>>(scheduler.find(asked));
  }

  FakeBackend backend;
  TileScheduler scheduler;
  WorkerScratch scratch;
};

}  // namespace

TEST_CASE("lines come before tiles, coarse tiles before fine ones, samples of more rows after") {
  const AttentionProblem problem = rule_problem(1, 2, 30000, 3000, 16);
  Steps steps(problem);
  const LineRequest line{kHead, Quantity::weights, false, {17}};
  const int top_level = steps.scheduler.geometry(kHead).top_level;
  const TileId top{kHead, Quantity::weights, top_level, 0, 0};
  steps.scheduler.want(WishesByKind{line, {}, {top, kFine}, {kHead}});
  const Assignment first = steps.bound_choice();
  CHECK(first.key == JobKey{line});
  // While the line is under way others do what comes next.
  const Assignment second = *steps.scheduler.choose();
  CHECK(second.key == JobKey{PassKey{kHead, Quantity::weights, {}, true}});
  steps.run(first);
  steps.run(second);
  std::vector<std::string> order;
  for (auto next = steps.scheduler.choose(); next; next = steps.scheduler.choose()) {
    std::string name = next->key.pass(Stage::exact) != nullptr     ? "pass"
                       : next->key.pass(Stage::sampled) != nullptr ? "overview"
                       : next->key.answers<TileId>() != nullptr    ? "tile"
                                                                   : "line";
    if (next->key == JobKey{kFine}) name = "fine";
    if (next->key == JobKey{PassKey{kHead, Quantity::weights, {}, true}}) name = "first";
    if (order.empty() || order.back() != name) order.push_back(name);
    if (name == "pass") break;
    steps.run(*next);
  }
  // The first stage is cut and seen before anything else; the tile of some rows comes before the
  // stages of more of all rows, each of which is cut as well.
  REQUIRE(order.size() > 5);
  CHECK(std::vector(order.begin(), order.begin() + 5) ==
        std::vector<std::string>{"first", "tile", "fine", "overview", "tile"});
  CHECK(order.back() == "pass");
  CHECK(order[order.size() - 2] == "tile");
  CHECK(steps.found(top));
  CHECK(steps.found(kFine));
  // A line that comes in now is next, after an entry.
  const LineRequest other{kHead, Quantity::weights, false, {18}};
  const ProbeRequest probe{kHead, 1, 2};
  steps.scheduler.want(WishesByKind{other, {}, {top, kFine}, {kHead}, {probe}});
  CHECK(steps.scheduler.choose_line()->key == JobKey{probe});
  CHECK(steps.scheduler.choose()->key == JobKey{other});
}

TEST_CASE("nothing is computed twice, and what is not wanted any more not at all") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  Steps steps(problem);
  for (int i = 0; i < 5; ++i) steps.scheduler.want(WishesByKind{{}, {}, {kFine, kFine}, {}});
  const Assignment first = steps.bound_choice();
  steps.scheduler.want(WishesByKind{{}, {}, {kFine}, {}});
  steps.run_all();
  steps.run(first);
  steps.run_all();
  CHECK(steps.found(kFine));
  CHECK(steps.backend.entries() == kTileSide * kTileSide);
  CHECK(steps.backend.calls(FakeCall::bind) == 1);
  CHECK(steps.scheduler.status(2).queue == 0);
  // Dropped before its first piece, and while one is under way.
  steps.scheduler.want(WishesByKind{{}, {}, {{kHead, Quantity::weights, 0, 0, 0}}, {}});
  CHECK(steps.scheduler.status(2).queue > 0);
  steps.scheduler.want({});
  CHECK(steps.run_all() == 0);
  steps.scheduler.want(WishesByKind{LineRequest{kHead, Quantity::weights, false, {1}}, {}, {}, {}});
  const Assignment running = *steps.scheduler.choose();
  steps.scheduler.want({});
  CHECK(steps.scheduler.status(2).queue == 0);
  CHECK_FALSE(steps.scheduler.choose());
  steps.run(running);
  CHECK(steps.backend.entries() == kTileSide * kTileSide + 3000);
}

TEST_CASE("what was not used for longest makes room, wishes stay") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  // Norms and buffers, and some tiles of 512 KiB.
  const int64_t memory = int64_t{3600} << 10;
  Steps steps(problem, memory);
  std::vector<TileId> tiles;
  for (int64_t col = 0; col < 8; ++col) tiles.push_back({kHead, Quantity::weights, 0, 0, col});
  for (size_t i = 0; i < tiles.size(); i += 2) {
    const std::vector<TileId> wanted{tiles[i], tiles[i + 1]};
    steps.scheduler.want(WishesByKind{{}, {}, wanted, {}});
    steps.run_all();
    CHECK(steps.scheduler.status(1).problem.empty());
    for (const TileId& id : wanted) CHECK(steps.found(id));
    CHECK(steps.scheduler.status(1).host_bytes <= memory);
  }
  CHECK_FALSE(steps.found(tiles[0]));
  CHECK_FALSE(steps.found(tiles[1]));
  // Another head: what is left of the first goes.
  const HeadId other{0, 0, 1};
  std::vector<TileId> many;
  for (int64_t col = 0; col < 6; ++col) many.push_back({other, Quantity::weights, 0, 1, col});
  steps.scheduler.want(WishesByKind{{}, {}, many, {}});
  steps.run_all();
  CHECK(steps.scheduler.status(1).problem.empty());
  for (const TileId& id : many) CHECK(steps.found(id));
}

TEST_CASE("a head that does not fit the memory is a problem, not a crash") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  Steps steps(problem, int64_t{1} << 20);
  steps.scheduler.want(WishesByKind{{}, {}, {{kHead, Quantity::weights, 4, 0, 0}, kFine}, {kHead}});
  steps.run_all();
  const TileSourceStatus status = steps.scheduler.status(1);
  CHECK(status.queue == 0);
  CHECK(contains(status.problem, "overview"));
  CHECK(contains(status.problem, "1.00 MiB"));
  CHECK_FALSE(contains(status.problem, "\n"));
  // Not again while it is wanted; once it was not wanted, anew.
  steps.scheduler.want(WishesByKind{{}, {}, {{kHead, Quantity::weights, 4, 0, 0}}, {}});
  CHECK(steps.run_all() == 0);
  steps.scheduler.want({});
  CHECK(steps.scheduler.status(1).problem.empty());
}

TEST_CASE("what finds no memory waits for the pieces that are under way") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  Steps steps(problem, int64_t{1} << 20);
  const LineRequest line{kHead, Quantity::weights, false, {1}};
  steps.scheduler.want(WishesByKind{line, {}, {}, {kHead}});
  const Assignment running = steps.bound_choice();
  REQUIRE(running.key == JobKey{line});
  CHECK_FALSE(steps.scheduler.choose());
  CHECK(steps.scheduler.status(1).problem.empty());
  CHECK(steps.scheduler.status(1).busy);
  // Nothing is left to wait for.
  steps.run(running);
  CHECK_FALSE(steps.scheduler.choose());
  CHECK(contains(steps.scheduler.status(1).problem, "overview"));
  CHECK_FALSE(steps.scheduler.status(1).busy);
}

TEST_CASE("work that failed for memory begins anew once there is some") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  Steps steps(problem, int64_t{96} << 20);
  MemoryReservation others = steps.scheduler.reserve((int64_t{96} << 20) - 30000, "others");
  const LineRequest line{kHead, Quantity::weights, false, {1}};
  const TileId coarse{kHead, Quantity::weights, 4, 0, 0};
  const WishesByKind wishes{line, {}, {coarse}, {}};
  steps.scheduler.want(wishes);
  steps.run_all();
  CHECK(contains(steps.scheduler.status(1).problem, "96.00 MiB"));
  CHECK_FALSE(steps.scheduler.problem(coarse).empty());
  CHECK_FALSE(steps.scheduler.status(1).busy);
  CHECK(steps.scheduler.lacks_memory());
  // Wishing for it again does not make room.
  steps.scheduler.want(wishes);
  CHECK(steps.run_all() == 0);
  CHECK_FALSE(steps.scheduler.status(1).busy);
  others = {};
  CHECK(steps.scheduler.status(1).busy);
  CHECK(steps.scheduler.status(1).problem.empty());
  CHECK(steps.scheduler.problem(coarse).empty());
  steps.run_all();
  CHECK(steps.found(line));
  CHECK(steps.found(coarse));
  CHECK(steps.scheduler.status(1).problem.empty());
  CHECK_FALSE(steps.scheduler.lacks_memory());
}

TEST_CASE("where memory is short a worker's calls take fewer rows") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  for (const int64_t memory : {int64_t{16} << 20, int64_t{256} << 10, int64_t{20} << 10}) {
    Steps steps(problem, memory);
    auto map = std::make_shared<BoundMap>();
    map->problem = &problem;
    map->head = steps.backend.bind(problem, 0, 0);
    steps.scratch.bind_to(map);
    const int64_t rows = steps.scratch.rows_per_call(48, 3000, false);
    INFO(memory << ": " << rows);
    if (memory == int64_t{16} << 20) CHECK(rows == 48);
    if (memory == int64_t{256} << 10) CHECK((rows > 1 && rows < 48));
    if (memory == int64_t{20} << 10) CHECK(rows == 1);
    // Of one row nobody looks first: who has no room for it says so.
    if (rows > 1) CHECK(steps.scheduler.memory_taken() >= rows * 3000 * 4);
    CHECK(steps.scratch.release_buffers() == (rows > 1));
    CHECK(steps.scheduler.memory_taken() == 0);
  }
}

TEST_CASE("a sample of which all was cut gives way to the pass, what is looked at does not") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  const MapGeometry geometry = MapGeometry::of(3000, 3000);
  const int64_t sample = SampledOverview::bytes(geometry, Quantity::weights);
  const int64_t pyramid = PyramidTiles::bytes(geometry);
  const int64_t beside = int64_t{4} << 20;
  REQUIRE(sample > beside);
  Steps steps(problem, pyramid + beside);
  const LineRequest line{kHead, Quantity::weights, false, {1}};
  const TileId coarse{kHead, Quantity::weights, 4, 0, 0};
  const TileId later{kHead, Quantity::weights, 2, 1, 1};
  steps.scheduler.want(WishesByKind{line, {}, {coarse}, {kHead}});
  std::optional<Assignment> next = steps.scheduler.choose();
  for (; next && next->key.pass(Stage::exact) == nullptr; next = steps.scheduler.choose()) {
    steps.run(*next);
    next.reset();  // A piece that is there may use the sample.
  }
  REQUIRE(next);
  CHECK(steps.found(line));
  REQUIRE(steps.found(coarse));
  CHECK_FALSE(steps.found(coarse)->exact);
  // A tile that comes into view now waits for the pass: no second sample fits beside it.
  steps.scheduler.want(WishesByKind{line, {}, {coarse, later}, {kHead}});
  CHECK(steps.scheduler.problem(coarse).empty());
  const std::optional<Assignment> second = steps.scheduler.choose();
  REQUIRE(second);
  CHECK(second->key.pass(Stage::exact) != nullptr);
  CHECK(steps.found(line));
  CHECK(steps.found(coarse));
}

TEST_CASE("a sample does not give way while a piece cuts from it") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  const int64_t memory = int64_t{64} << 20;
  Steps steps(problem, memory);
  const TileId coarse{kHead, Quantity::weights, 4, 0, 0};
  steps.scheduler.want(WishesByKind{{}, {}, {coarse}, {}});
  std::optional<Assignment> cut;
  for (auto next = steps.scheduler.choose(); next; next = steps.scheduler.choose()) {
    const HeadCache& head = steps.scheduler.head(kHead);
    const auto& sampled = head.quantities[0].sampled;
    if (next->key == JobKey{coarse} && sampled->stages_done == sampled->plan.stages()) {
      cut = std::move(next);
      break;
    }
    steps.run(*next);
  }
  REQUIRE(cut);
  // Nobody wants the tile any more, and everything else could go.
  const TileId fine{kHead, Quantity::weights, 0, 0, 0};
  steps.scheduler.want(WishesByKind{{}, {}, {fine}, {}});
  const int64_t sample = SampledOverview::bytes(MapGeometry::of(3000, 3000), Quantity::weights);
  CHECK_THROWS_AS(steps.scheduler.reserve(memory - sample / 2, "others"), Error);
  CHECK_FALSE(steps.scheduler.head(kHead).quantities[0].sampled->gave_way());
  steps.run(*cut);
  CHECK(steps.found(coarse));
}

TEST_CASE("a sample that gave way in vain is made anew") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  const MapGeometry geometry = MapGeometry::of(3000, 3000);
  Steps steps(problem, PyramidTiles::bytes(geometry) + (int64_t{4} << 20));
  const TileId coarse{kHead, Quantity::weights, 4, 0, 0};
  const TileId later{kHead, Quantity::weights, 2, 1, 1};
  steps.scheduler.want(WishesByKind{{}, {}, {coarse}, {kHead}});
  std::optional<Assignment> next = steps.scheduler.choose();
  for (; next && next->key.pass(Stage::exact) == nullptr; next = steps.scheduler.choose()) {
    steps.run(*next);
    next.reset();  // A piece that is there may use the sample.
  }
  REQUIRE(next);
  steps.scheduler.fail(*next, {"the disk is gone"});
  steps.scheduler.want(WishesByKind{{}, {}, {coarse, later}, {kHead}});
  steps.run_all();
  CHECK(contains(steps.scheduler.status(1).problem, "the disk is gone"));
  REQUIRE(steps.found(later));
  CHECK_FALSE(steps.found(later)->exact);
}

TEST_CASE("a head's own logits give way to its weights where nobody wants them any more") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  // Room for one of the two pyramids.
  Steps steps(problem, int64_t{56} << 20);
  const TileId logits{kHead, Quantity::logits, 4, 0, 0};
  const TileId weights{kHead, Quantity::weights, 4, 0, 0};
  steps.scheduler.want(WishesByKind{{}, {}, {logits}, {}});
  steps.run_all();
  REQUIRE(steps.found(logits));
  steps.scheduler.want(WishesByKind{{}, {}, {weights}, {kHead}});
  std::optional<Assignment> next = steps.scheduler.choose();
  // The pass comes last, and what it makes has to fit too.
  for (; next && next->key.pass(Stage::exact) == nullptr; next = steps.scheduler.choose()) {
    steps.run(*next);
  }
  CHECK(next);
  CHECK(steps.scheduler.status(1).problem == "");
  CHECK(steps.found(weights));
}

TEST_CASE("a late failure ends nothing that has begun anew") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  Steps steps(problem);
  // Two pieces: rows are added up in groups.
  constexpr int64_t kRows = RowMean::kGroupRows + 8;
  LineRequest mean{kHead, Quantity::weights, false, {}};
  for (int64_t row = 0; row < kRows; ++row) mean.tokens.push_back(row);
  steps.scheduler.want(WishesByKind{mean, {}, {}, {}});
  const Assignment first = steps.bound_choice();
  const Assignment late = *steps.scheduler.choose();
  REQUIRE(late.key == JobKey{mean});
  steps.scheduler.fail(first, {"the disk is gone"});
  CHECK(contains(steps.scheduler.status(2).problem, "the disk is gone"));
  steps.scheduler.want({});
  steps.scheduler.want(WishesByKind{mean, {}, {}, {}});
  steps.run(*steps.scheduler.choose());
  steps.scheduler.fail(late, {"the disk is gone"});
  CHECK(steps.scheduler.status(2).problem.empty());
  CHECK(steps.run_all() == 1);
  REQUIRE(steps.found(mean));
  double sum = 0;
  for (int64_t row = 0; row < kRows; ++row) sum += fake_weight(0, 0, row, 5);
  CHECK(steps.found(mean)->values[5] == Approx(sum / kRows));
  // A failure of what nobody wants any more is no problem of anybody's.
  const LineRequest line{kHead, Quantity::logits, false, {1}};
  steps.scheduler.want(WishesByKind{line, {}, {}, {}});
  const Assignment unwanted = *steps.scheduler.choose();
  steps.scheduler.want({});
  steps.scheduler.fail(unwanted, {"the disk is gone"});
  CHECK(steps.scheduler.status(2).problem.empty());
  steps.scheduler.want(WishesByKind{line, {}, {}, {}});
  steps.run_all();
  CHECK(steps.found(line));
}

TEST_CASE("a failing piece is told and not tried forever") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  FakeBackend backend;
  backend.num_workers = 2;
  std::atomic<bool> broken{true};
  std::atomic<int> calls{0};
  backend.on_call = [&](FakeCall call) {
    if (call == FakeCall::bind) return;
    ++calls;
    if (broken) throw Error(ErrorCode::file, "q.safetensors: the file is shorter than it was");
  };
  std::mutex mutex;
  std::condition_variable woken;
  TileService service(calls_of(problem), backend,
                      {.memory = int64_t{64} << 20, .threads = 2, .cache_folders = {}}, [&] {
                        const std::lock_guard lock(mutex);
                        woken.notify_all();
                      });
  const auto idle = [&] { return !service.status().busy; };
  const auto wait_idle = [&] {
    std::unique_lock lock(mutex);
    for (int i = 0; i < 3000 && !idle(); ++i) woken.wait_for(lock, std::chrono::milliseconds(20));
    return idle();
  };
  const LineRequest row{kHead, Quantity::weights, false, {1}};
  const LineRequest column{kHead, Quantity::weights, true, {1}};
  const TileId top{kHead, Quantity::weights, 4, 0, 0};
  service.want(WishesByKind{row, {}, {top, kFine}, {}});
  REQUIRE(wait_idle());
  CHECK(contains(service.status().problem, "shorter than it was"));
  CHECK(contains(service.problem(row), "shorter than it was"));
  CHECK(contains(service.problem(top), "shorter than it was"));
  CHECK_FALSE(find(service, kFine));
  // The pass fails too, and with it what waits for the norms.
  service.want(WishesByKind{row, column, {top, kFine}, {kHead}});
  REQUIRE(wait_idle());
  CHECK_FALSE(service.status().problem.empty());
  const int tried = calls;
  service.want(WishesByKind{row, column, {top, kFine}, {kHead}});
  REQUIRE(wait_idle());
  CHECK(calls == tried);
  // Nor does anything wait that is wanted only now.
  const LineRequest other_column{kHead, Quantity::weights, true, {2}};
  const TileId base{kHead, Quantity::weights, 1, 3, 2};
  service.want(WishesByKind{other_column, {}, {base}, {kHead}});
  REQUIRE(wait_idle());
  CHECK_FALSE(service.problem(other_column).empty());
  CHECK_FALSE(service.problem(base).empty());
  // The file is whole again.
  broken = false;
  service.want({});
  service.want(WishesByKind{row, {}, {top, kFine}, {}});
  REQUIRE(wait_idle());
  CHECK(service.status().problem.empty());
  CHECK(service.problem(row).empty());
  CHECK(service.problem(top).empty());
  CHECK(service.problem(kFine).empty());
  REQUIRE(find(service, kFine));
  REQUIRE(find(service, top));
  REQUIRE(find(service, row));
  CHECK(find(service, row)->values[5] == fake_weight(0, 0, 1, 5));
}

TEST_CASE("a head that cannot be bound fails as a whole, once") {
  const AttentionProblem problem = rule_problem(1, 2, 3000, 3000, 16);
  FakeBackend backend;
  backend.on_call = [](FakeCall call) {
    if (call == FakeCall::bind) throw Error(ErrorCode::file, "k.safetensors: gone");
  };
  TileService service(calls_of(problem), backend,
                      {.memory = int64_t{64} << 20, .threads = 2, .cache_folders = {}}, [] {});
  service.want(WishesByKind{{}, {}, {kFine, {kHead, Quantity::weights, 4, 0, 0}}, {kHead}});
  CHECK(becomes([&] { return !service.status().busy; }));
  CHECK(service.status().problem == "k.safetensors: gone");
  CHECK(backend.calls(FakeCall::bind) == 1);
}

TEST_CASE("a service ends in the middle of its work") {
  AttentionCase description;
  description.shape = {1, 2, 1, 2600, 1900, 16};
  const Oracle oracle(description);
  const TileId top{kHead, Quantity::weights, 4, 0, 0};
  const TileId logits{kHead, Quantity::logits, 0, 1, 1};
  for (int64_t i = 0; i < 12; ++i) {
    ServiceHarness harness(oracle.problem());
    harness.want(
        {LineRequest{kHead, Quantity::weights, i % 2 == 0, {i}}, {}, {top, logits}, {kHead}});
    if (i % 3 == 1) {
      CHECK(harness.wait([&] { return find(harness.service(), top) != nullptr; }));
    } else if (i % 3 == 2) {
      CHECK(harness.wait([&] { return harness.service().status().exact_progress > 0.2; }));
    }
  }
}

TEST_CASE("wishes, questions and probes from everywhere while the pass runs") {
  AttentionCase description;
  description.shape = {1, 3, 1, 2600, 1900, 16};
  description.mask = "causal";
  const Oracle oracle(description);
  ServiceHarness harness(oracle.problem());
  TileService& service = harness.service();
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      find(service, TileId{{0, 0, 1}, Quantity::weights, 2, 0, 0});
      service.status();
      service.exact({0, 0, 2});
      // Workers give way to it.
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  for (int64_t i = 0; i < 60; ++i) {
    const HeadId head{0, 0, i % 3};
    const LineRequest line{head, Quantity::weights, i % 5 == 0, {i * 7, i * 7 + 3}};
    const TileId tile{head, i % 4 == 0 ? Quantity::logits : Quantity::weights,
                      static_cast<int>(i % 3), 0, 0};
    const auto probed = harness.probe({head, 2599, i}, {line, {}, {tile}, {head}});
    REQUIRE(probed);
    CHECK(probed->weight > 0);
    if (i % 10 == 9) {
      REQUIRE(harness.wait([&] { return find(service, line) && find(service, tile); }));
    }
  }
  harness.want({{}, {}, {}, {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}}});
  REQUIRE(harness.wait_idle());
  reader.request_stop();
  CHECK(service.status().problem == "");
  for (int64_t head = 0; head < 3; ++head) {
    CHECK(service.exact({0, 0, head}));
    const MapReference reference(oracle, {0, 0, head}, Quantity::weights);
    const auto tile = find(service, TileId{{0, 0, head}, Quantity::weights, 3, 0, 0});
    REQUIRE(tile);
    CHECK(reference.differs(*tile) == "");
  }
}
