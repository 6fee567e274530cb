#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "core/base/checked_math.h"
#include "core/stream/streaming_engine.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/waiting.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kPlenty = int64_t{1} << 40;

/// Puts the tiles of a stream together again and checks each of them. Thread-safe.
class CollectingSink : public TileSink {
 public:
  explicit CollectingSink(TileRequest request) : request_(request) {}

  TileRequest request() const override { return request_; }

  void begin(std::span<const HeadTask> tasks, int workers) override {
    ++begins;
    if (on_begin) on_begin();
    workers_ = workers;
    for (const HeadTask& task : tasks) {
      Head& head = heads.emplace_back();
      const auto rows = static_cast<size_t>(task.num_rows());
      head.norms_seen.assign(rows, 0);
      if (!request_.entries) continue;
      head.entries.assign(rows * static_cast<size_t>(task.keys.size()), kUnwritten);
    }
  }

  void consume(const Tile& tile) override {
    if (on_consume) on_consume();
    const int at_once = ++inside_;
    const std::lock_guard lock(mutex_);
    if (at_once > workers_) problems += "more consumers than workers; ";
    Head& head = heads[static_cast<size_t>(tile.task_index)];
    take_norms(tile, head);
    if (request_.entries) {
      for (size_t i = 0; i < tile.chunks.size(); ++i) take_chunk(tile, i, head);
    }
    ++tiles;
    --inside_;
  }

  void end() override {
    ++ends;
    if (on_end) on_end();
  }

  static constexpr float kUnwritten = -12345.5f;
  struct Head {
    std::vector<float> entries;  ///< [rows, keys] of the task
    std::vector<int> norms_seen;
  };
  std::deque<Head> heads;
  std::string problems;
  int begins = 0, ends = 0, tiles = 0, empty_chunks = 0;
  std::function<void()> on_begin, on_consume, on_end;

 private:
  void take_norms(const Tile& tile, Head& head) {
    const HeadTask& task = *tile.task;
    const bool expected = request_.norms && tile.first_segment &&
                          request_.quantity == Quantity::weights &&
                          is_normalised(task.problem->score());
    if (tile.norms.size() != (expected ? static_cast<size_t>(tile.rows.size()) : 0)) {
      problems += "wrong number of norms; ";
      return;
    }
    for (size_t r = 0; r < tile.norms.size(); ++r) {
      const int64_t row = tile.rows.begin + static_cast<int64_t>(r);
      const RowNorm norm = fake_norm(task.batch, task.head, task.row_at(row));
      if (tile.norms[r].exponent != norm.exponent || tile.norms[r].sum != norm.sum) {
        problems += "norm of another row; ";
      }
      ++head.norms_seen[static_cast<size_t>(row)];
    }
  }

  void take_chunk(const Tile& tile, size_t i, Head& head) {
    const HeadTask& task = *tile.task;
    const std::byte* chunk = tile.chunks[i];
    const int64_t chunk_bytes = request_.chunk_rows * request_.chunk_cols * 4;
    if (chunk != nullptr && i > 0 && tile.chunks[i - 1] != nullptr &&
        chunk != tile.chunks[i - 1] + chunk_bytes) {
      problems += "neighbouring chunks are not contiguous; ";
    }
    if (chunk == nullptr) ++empty_chunks;
    const auto* values = reinterpret_cast<const float*>(chunk);
    const int64_t first_col = tile.cols.begin + static_cast<int64_t>(i) * request_.chunk_cols;
    for (int64_t r = 0; r < request_.chunk_rows; ++r) {
      for (int64_t c = 0; c < request_.chunk_cols; ++c) {
        const float value = chunk == nullptr ? 0 : values[r * request_.chunk_cols + c];
        const int64_t row = tile.rows.begin + r, col = first_col + c;
        if (row >= tile.rows.end || col >= tile.cols.end) {
          if (value != 0 || std::signbit(value)) problems += "padding is not zero; ";
          continue;
        }
        float& entry = head.entries[static_cast<size_t>(row * task.keys.size() + col)];
        if (entry != kUnwritten) problems += "an entry came twice; ";
        entry = value;
      }
    }
  }

  const TileRequest request_;
  std::mutex mutex_;
  std::atomic<int> inside_{0};
  int workers_ = 0;
};

/// The first norm that did not come once or entry that is wrong; empty where the head is right.
std::string check_head(const HeadTask& task, const TileRequest& request,
                       const CollectingSink::Head& head) {
  const bool norms = request.norms && request.quantity == Quantity::weights &&
                     is_normalised(task.problem->score());
  for (int seen : head.norms_seen) {
    if (seen != (norms ? 1 : 0)) return "norms of a row came " + std::to_string(seen) + " times";
  }
  for (int64_t r = 0; request.entries && r < task.num_rows(); ++r) {
    const int64_t query = task.row_at(r);
    for (int64_t c = 0; c < task.keys.size(); ++c) {
      const int64_t key = task.keys.begin + c;
      float bias = 0;
      task.problem->mask().fill_bias(task.batch, task.head, {&query, 1}, {key, key + 1}, &bias, 1);
      const bool masked = bias < 0;
      const float expected = request.quantity == Quantity::weights
                                 ? (masked ? 0 : fake_weight(task.batch, task.head, query, key))
                                 : (masked ? -std::numeric_limits<float>::infinity()
                                           : fake_logit(task.batch, task.head, query, key));
      if (head.entries[static_cast<size_t>(r * task.keys.size() + c)] != expected) {
        return "entry (" + std::to_string(query) + ", " + std::to_string(key) + ") is wrong";
      }
    }
  }
  return "";
}

Mask random_mask(std::mt19937_64& random, int64_t queries, int64_t keys) {
  switch (pick(random, 0, 4)) {
    case 0:
      return Mask::causal();
    case 1:
      return Mask::window(pick(random, 0, 30));
    case 2: {
      BlockMask mask{1, ceil_div(queries, 16), ceil_div(keys, 16), 16, 16, {}};
      for (int64_t i = 0; i < mask.query_blocks * mask.key_blocks; ++i) {
        mask.bits.push_back(pick(random, 1, 5) == 1);
      }
      return Mask::blocks(mask);
    }
    default:
      return {};
  }
}

/// A small random stream.
struct SmallStream {
  explicit SmallStream(std::mt19937_64& random) {
    const ScoreFunction score{static_cast<ScoreFunction::Form>(pick(random, 0, 3))};
    request.entries = score == ScoreFunction::sigmoid || pick(random, 0, 4) > 0;
    request.norms = !request.entries || pick(random, 0, 3) > 0;
    if (request.entries && pick(random, 0, 3) == 0) request.quantity = Quantity::logits;
    request.chunk_rows = pick(random, 1, 40);
    request.chunk_cols = pick(random, 1, 40);
    for (int64_t p = pick(random, 1, 2); p > 0; --p) {
      const int64_t queries = pick(random, 1, 120), keys = pick(random, 1, 120);
      problems.push_back(rule_problem(2, 3, queries, keys, pick(random, 1, 9),
                                      random_mask(random, queries, keys), score));
      for (int64_t t = pick(random, 1, 4); t > 0; --t) add_task(random, problems.back());
    }
    backend.num_workers = static_cast<int>(pick(random, 1, 4));
  }

  void add_task(std::mt19937_64& random, const AttentionProblem& problem) {
    HeadTask task{&problem, pick(random, 0, 1),     pick(random, 0, 2), {0, problem.num_queries()},
                  {},       {0, problem.num_keys()}};
    if (pick(random, 0, 1) == 0) {
      task.keys.begin = pick(random, 0, problem.num_keys() - 1);
      task.rows.end = pick(random, 1, problem.num_queries());
    }
    if (pick(random, 0, 2) == 0) {
      auto& list = lists.emplace_back();
      for (int64_t i = 0; i < problem.num_queries(); i += pick(random, 1, 4)) list.push_back(i);
      task.row_list = list;
    }
    if (request.entries && pick(random, 0, 3) == 0) {
      auto& known = norms.emplace_back();
      for (int64_t i = 0; i < task.num_rows(); ++i) {
        known.push_back(fake_norm(task.batch, task.head, task.row_at(i)));
      }
      task.known_norms = known;
    }
    tasks.push_back(task);
  }

  std::deque<AttentionProblem> problems;
  std::deque<std::vector<int64_t>> lists;
  std::deque<std::vector<RowNorm>> norms;
  std::vector<HeadTask> tasks;
  TileRequest request;
  FakeBackend backend;
};

/// The plan for a budget between the smallest possible and plenty.
TilePlan random_plan(std::mt19937_64& random, const SmallStream& s) {
  const auto waiting = static_cast<int>(pick(random, 0, 2));
  const TilePlan best = plan_tiles(s.tasks, s.request, s.backend, kPlenty, 0, waiting);
  for (int64_t budget = pick(random, 0, best.bytes_total);; budget += best.bytes_total / 8 + 1) {
    try {
      return plan_tiles(s.tasks, s.request, s.backend, budget, 0, waiting);
    } catch (const Error&) {
      // Too little: a little more.
    }
  }
}

/// Four heads of 100 × 90 entries in tiles of 16 × 16.
struct PlainStream {
  PlainStream() {
    for (int64_t head = 0; head < 4; ++head) {
      tasks.push_back({&problem, 0, head, {0, 100}, {}, {0, 90}});
    }
    request.chunk_rows = request.chunk_cols = 16;
  }
  const AttentionProblem problem = rule_problem(1, 4, 100, 90, 8);
  std::vector<HeadTask> tasks;
  TileRequest request;
  FakeBackend backend;
};

struct Boom : std::runtime_error {
  Boom() : std::runtime_error("boom") {}
};

}  // namespace

TEST_CASE("random streams deliver every entry and every norm once, in any plan") {
  std::mt19937_64 random(42);
  for (int round = 0; round < 250; ++round) {
    INFO("round " << round);
    const SmallStream s(random);
    const TilePlan plan = random_plan(random, s);
    INFO(plan.describe());
    MemoryBudget budget(plan.bytes_total);
    CollectingSink sink(s.request);
    REQUIRE(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink));
    REQUIRE(sink.problems == "");
    REQUIRE(sink.begins == 1);
    REQUIRE(sink.ends == 1);
    REQUIRE(sink.tiles == plan.tiles);
    for (size_t i = 0; i < s.tasks.size(); ++i) {
      REQUIRE(check_head(s.tasks[i], s.request, sink.heads[i]) == "");
    }
    REQUIRE(s.backend.most_live_heads() <= plan.bound_heads);
    REQUIRE(s.backend.live_heads() == 0);
    REQUIRE(s.backend.calls(FakeCall::bind) == static_cast<int64_t>(s.tasks.size()));
    // Tiles that the mask leaves empty are not computed.
    if (s.request.entries) REQUIRE(s.backend.entries() == plan.entries);
    REQUIRE(budget.used() == 0);
    REQUIRE(budget.peak() == plan.bytes_total);
  }
}

TEST_CASE("one product takes one call a panel, two take norms and segments") {
  const PlainStream s;
  const TilePlan best = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  MemoryBudget budget(kPlenty);
  CollectingSink sink(s.request);
  REQUIRE(StreamingEngine(s.backend, budget).run(s.tasks, best, sink));
  CHECK(s.backend.calls(FakeCall::emit_panel) == 4 * 7);
  CHECK(s.backend.calls(FakeCall::row_norms) == 0);
  CHECK(s.backend.calls(FakeCall::emit) == 0);

  const PlainStream two;
  TilePlan plan = best;
  while (plan.one_product || plan.segment_chunks > 2) {
    plan = plan_tiles(two.tasks, two.request, two.backend, plan.bytes_total - 1);
  }
  CollectingSink segments(two.request);
  REQUIRE(StreamingEngine(two.backend, budget).run(two.tasks, plan, segments));
  CHECK(two.backend.calls(FakeCall::row_norms) == 4 * 7);
  CHECK(two.backend.calls(FakeCall::emit) == 4 * 7 * 3);
  CHECK(segments.tiles == 4 * 7 * 3);
}

TEST_CASE("norms that are known already are not computed again") {
  PlainStream s;
  std::deque<std::vector<RowNorm>> norms;
  for (HeadTask& task : s.tasks) {
    auto& known = norms.emplace_back();
    for (int64_t row = 0; row < 100; ++row) known.push_back(fake_norm(0, task.head, row));
    task.keys = {40, 50};
    task.known_norms = known;
  }
  const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  CHECK(plan.flops == 4 * 100 * 10 * 2 * 8);
  MemoryBudget budget(plan.bytes_total);
  CollectingSink sink(s.request);
  REQUIRE(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink));
  CHECK(sink.problems == "");
  for (size_t i = 0; i < 4; ++i) CHECK(check_head(s.tasks[i], s.request, sink.heads[i]) == "");
  CHECK(s.backend.calls(FakeCall::emit) == 4 * 7);
  CHECK(s.backend.calls(FakeCall::row_norms) == 0);
  CHECK(s.backend.calls(FakeCall::emit_panel) == 0);
}

TEST_CASE("the budget is taken before anything is bound") {
  const PlainStream s;
  const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  MemoryBudget budget(plan.bytes_total);
  const MemoryReservation other = budget.reserve(1, "somebody else");
  CollectingSink sink(s.request);
  CHECK(refused([&] { StreamingEngine(s.backend, budget).run(s.tasks, plan, sink); },
                ErrorCode::resource, {"tiles"}) == "");
  CHECK(sink.begins == 0);
  CHECK(s.backend.calls(FakeCall::bind) == 0);
}

TEST_CASE("the next head is bound while the current one is computed, and no third") {
  PlainStream s;
  s.backend.num_workers = 2;
  const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  REQUIRE(plan.bound_heads == 2);
  std::atomic<bool> prefetched{false};
  std::atomic<bool> in_vain{false};
  // The first head's last panel is not finished before a second head has been asked for.
  const int64_t panels = ceil_div(s.tasks[0].num_rows(), plan.panel_rows);
  s.backend.on_call = [&](FakeCall call) {
    if (call == FakeCall::bind && s.backend.calls(FakeCall::bind) == 2) prefetched = true;
    if (call == FakeCall::emit_panel && s.backend.calls(FakeCall::emit_panel) >= panels) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!prefetched && !in_vain) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() >= until) in_vain = true;
      }
    }
  };
  MemoryBudget budget(kPlenty);
  CollectingSink sink(s.request);
  REQUIRE(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink));
  CHECK(prefetched);
  CHECK_FALSE(in_vain);
  CHECK(s.backend.most_live_heads() <= 2);
}

TEST_CASE("tiles that are there already are skipped") {
  for (const bool all : {false, true}) {
    const PlainStream s;
    TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
    MemoryBudget budget(kPlenty);
    CollectingSink sink(s.request);
    StreamControl control;
    std::atomic<int> asked{0};
    control.skip = [&](int64_t task, IndexRange rows, IndexRange cols) {
      ++asked;
      if (rows.size() < 1 || rows.end > 100 || cols != IndexRange{0, 90}) throw Boom();
      return all || (task == 1 && rows.begin == 32);
    };
    int64_t done = 0, total = 0;
    control.progress = [&](const StreamProgress& p) {
      done = p.tiles_done;
      total = p.tiles_total;
    };
    REQUIRE(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink, control));
    CHECK(asked == 28);
    CHECK(sink.tiles == (all ? 0 : 27));
    CHECK(s.backend.calls(FakeCall::emit_panel) == (all ? 0 : 27));
    CHECK(sink.ends == 1);
    CHECK(done == 28);
    CHECK(total == 28);
    if (all) continue;
    CHECK(check_head(s.tasks[0], s.request, sink.heads[0]) == "");
    CHECK(sink.heads[1].entries[32 * 90] == CollectingSink::kUnwritten);
    CHECK(sink.heads[1].entries[31 * 90] != CollectingSink::kUnwritten);
    CHECK(sink.heads[1].norms_seen[47] == 0);
    CHECK(sink.heads[1].norms_seen[48] == 1);
  }
}

TEST_CASE("segments whose first one is skipped still get their norms computed") {
  const PlainStream s;
  TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  while (plan.one_product || plan.segment_chunks > 2) {
    plan = plan_tiles(s.tasks, s.request, s.backend, plan.bytes_total - 1);
  }
  MemoryBudget budget(kPlenty);
  CollectingSink sink(s.request);
  StreamControl control;
  control.skip = [](int64_t, IndexRange, IndexRange cols) { return cols.begin == 0; };
  REQUIRE(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink, control));
  // The fake backend refuses norms of other rows.
  CHECK(sink.problems == "");
  CHECK(sink.tiles == 4 * 7 * 2);
  CHECK(sink.heads[0].norms_seen[0] == 0);
}

TEST_CASE("progress rises and ends at the whole") {
  const PlainStream s;
  const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  MemoryBudget budget(kPlenty);
  CollectingSink sink(s.request);
  sink.on_consume = [] { std::this_thread::sleep_for(std::chrono::milliseconds(12)); };
  StreamControl control;
  std::vector<int64_t> seen;  // no lock: it is called from one thread at a time
  control.progress = [&](const StreamProgress& p) { seen.push_back(p.tiles_done); };
  REQUIRE(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink, control));
  REQUIRE(seen.size() >= 2);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(seen.back() == plan.tiles);
  // 28 tiles of 12 ms by three workers are not much more than 112 ms: far fewer calls than tiles.
  CHECK(seen.size() < 20);
}

TEST_CASE("whatever throws, wherever, comes out and leaves nothing running") {
  std::vector<std::pair<std::string, FakeCall>> calls{{"bind", FakeCall::bind},
                                                      {"emit_panel", FakeCall::emit_panel}};
  for (const auto& [name, where] : calls) {
    const int64_t count = where == FakeCall::bind ? 4 : 28;
    for (int64_t n = 1; n <= count; ++n) {
      INFO(name << " " << n);
      PlainStream s;
      const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
      std::atomic<int64_t> seen{0};
      s.backend.on_call = [&, wanted = where, n](FakeCall call) {
        if (call == wanted && ++seen == n) throw Boom();
      };
      MemoryBudget budget(kPlenty);
      CollectingSink sink(s.request);
      CHECK_THROWS_AS(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink), Boom);
      CHECK(sink.ends == 0);
      CHECK(s.backend.live_heads() == 0);
      CHECK(budget.used() == 0);
    }
  }
}

TEST_CASE("a sink, a callback or a file that fails ends the run") {
  struct Case {
    std::string name;
    std::function<void(PlainStream&, CollectingSink&, StreamControl&)> arrange;
    bool ends = false;
  };
  std::atomic<int> count{0};
  const auto at = [&](int n) {
    if (++count == n) throw Boom();
  };
  const std::vector<Case> cases{
      {"begin", [&](auto&, auto& sink, auto&) { sink.on_begin = [&] { at(1); }; }},
      {"first tile", [&](auto&, auto& sink, auto&) { sink.on_consume = [&] { at(1); }; }},
      {"tile 15", [&](auto&, auto& sink, auto&) { sink.on_consume = [&] { at(15); }; }},
      {"last tile", [&](auto&, auto& sink, auto&) { sink.on_consume = [&] { at(28); }; }},
      {"end", [&](auto&, auto& sink, auto&) { sink.on_end = [&] { at(1); }; }, true},
      {"progress",
       [&](auto&, auto&, auto& control) {
         control.progress = [&](const StreamProgress&) { at(1); };
       }},
      {"skip",
       [&](auto&, auto&, auto& control) {
         control.skip = [&](int64_t, IndexRange, IndexRange) {
           at(9);
           return false;
         };
       }},
      {"every worker at once",
       [&](auto&, auto& sink, auto&) { sink.on_consume = [] { throw Boom(); }; }}};
  for (const Case& c : cases) {
    INFO(c.name);
    count = 0;
    PlainStream s;
    const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
    MemoryBudget budget(kPlenty);
    CollectingSink sink(s.request);
    StreamControl control;
    c.arrange(s, sink, control);
    CHECK_THROWS_AS(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink, control), Boom);
    CHECK(sink.ends == (c.ends ? 1 : 0));
    CHECK(s.backend.live_heads() == 0);
    CHECK(budget.used() == 0);
  }
}

TEST_CASE("the first failure is the one that is reported") {
  PlainStream s;
  s.backend.num_workers = 1;
  const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  MemoryBudget budget(kPlenty);
  CollectingSink sink(s.request);
  sink.on_consume = [] { throw Error(ErrorCode::file, "disk full"); };
  CHECK(refused([&] { StreamingEngine(s.backend, budget).run(s.tasks, plan, sink); },
                ErrorCode::file, {"disk full"}) == "");
}

TEST_CASE("a stop at any point ends the run without an error") {
  for (int64_t n = 0; n <= 28; ++n) {
    INFO("stop in tile " << n);
    const PlainStream s;
    const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
    MemoryBudget budget(kPlenty);
    CollectingSink sink(s.request);
    std::stop_source source;
    StreamControl control;
    control.stop = source.get_token();
    std::atomic<int64_t> count{0};
    if (n == 0) source.request_stop();
    sink.on_consume = [&] {
      if (++count == n) source.request_stop();
    };
    const bool complete = StreamingEngine(s.backend, budget).run(s.tasks, plan, sink, control);
    // A stop that comes with the last tiles may find nothing left to stop.
    CHECK(complete == (sink.tiles == plan.tiles));
    CHECK(sink.ends == (complete ? 1 : 0));
    if (n <= plan.tiles - plan.workers) CHECK_FALSE(complete);
    if (n == 0) CHECK(sink.tiles == 0);
    CHECK(sink.tiles < n + plan.workers);
    CHECK(sink.problems == "");
    CHECK(s.backend.live_heads() == 0);
    CHECK(budget.used() == 0);
  }
}

TEST_CASE("a stop from another thread, and one while heads are being bound") {
  for (const bool in_bind : {false, true}) {
    PlainStream s;
    const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
    MemoryBudget budget(kPlenty);
    CollectingSink sink(s.request);
    std::stop_source source;
    std::atomic<bool> consuming{false};
    StreamControl control;
    control.stop = source.get_token();
    if (in_bind) {
      s.backend.on_call = [&](FakeCall call) {
        if (call == FakeCall::bind) source.request_stop();
      };
    } else {
      // None is done before the stop.
      sink.on_consume = [&] {
        consuming = true;
        becomes([&] { return source.stop_requested(); });
      };
    }
    std::jthread stopper;
    if (!in_bind) {
      stopper = std::jthread([&] {
        becomes([&] { return consuming.load(); });
        source.request_stop();
      });
    }
    CHECK_FALSE(StreamingEngine(s.backend, budget).run(s.tasks, plan, sink, control));
    CHECK(sink.ends == 0);
    CHECK(sink.tiles <= plan.workers);
    CHECK(s.backend.live_heads() == 0);
  }
}

TEST_CASE("an engine runs one stream after the other") {
  const PlainStream s;
  const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
  MemoryBudget budget(plan.bytes_total);
  StreamingEngine engine(s.backend, budget);
  CollectingSink failing(s.request);
  failing.on_consume = [] { throw Boom(); };
  CHECK_THROWS_AS(engine.run(s.tasks, plan, failing), Boom);
  for (int i = 0; i < 2; ++i) {
    CollectingSink sink(s.request);
    CHECK(engine.run(s.tasks, plan, sink));
    CHECK(check_head(s.tasks[3], s.request, sink.heads[3]) == "");
  }
}
