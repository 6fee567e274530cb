// However few panels a head has, all workers have something to do.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/null_sink.h"
#include "core/stream/streaming_engine.h"
#include "kernels/backend_factory.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kPlenty = int64_t{1} << 40;

/// A place that nobody leaves before `expected` threads were inside at once. Thread-safe.
class Meeting {
 public:
  explicit Meeting(int expected) : expected_(expected) {}

  void attend() {
    std::unique_lock lock(mutex_);
    ++inside_;
    most_ = std::max(most_, inside_);
    changed_.notify_all();
    // A meeting that never comes about must end the test, not hang it.
    changed_.wait_for(lock, std::chrono::seconds(20),
                      [&] { return most_ >= expected_ || given_up_; });
    given_up_ |= most_ < expected_;
    changed_.notify_all();
    --inside_;
  }
  int most() const { return most_; }

 private:
  const int expected_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  int most_ = 0;
  bool given_up_ = false;
};

std::vector<HeadTask> all_heads(const AttentionProblem& problem) {
  std::vector<HeadTask> tasks;
  for (int64_t head = 0; head < problem.num_heads(); ++head) {
    tasks.push_back({&problem, 0, head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}});
  }
  return tasks;
}

/// The rows of all heads.
std::vector<ReductionJob> row_jobs(const AttentionProblem& problem) {
  std::vector<ReductionJob> jobs;
  for (const HeadTask& task : all_heads(problem)) {
    ReductionRequest request;
    request.rows = true;
    jobs.push_back({task, request});
  }
  return jobs;
}

TileRequest small_tiles(int64_t rows) {
  TileRequest request;
  request.chunk_rows = rows;
  request.chunk_cols = 64;
  return request;
}

/// How many workers of a plan were in `call` at once.
int workers_at_once(const AttentionProblem& problem, int64_t panel_rows, int workers,
                    FakeCall call) {
  const std::vector<HeadTask> tasks = all_heads(problem);
  FakeBackend backend;
  backend.num_workers = workers;
  Meeting meeting(workers);
  backend.on_call = [&](FakeCall made) {
    if (made == call) meeting.attend();
  };
  const TileRequest request = small_tiles(panel_rows);
  const TilePlan plan = plan_tiles(tasks, request, backend, kPlenty);
  MemoryBudget budget(plan.bytes_total);
  NullSink sink(request);
  REQUIRE(StreamingEngine(backend, budget).run(tasks, plan, sink));
  CHECK(backend.most_live_heads() <= plan.bound_heads);
  return meeting.most();
}

/// A cpu backend whose heads all meet where they reduce.
class MeetingBackend : public ForwardingBackend {
 public:
  explicit MeetingBackend(int workers)
      : ForwardingBackend(make_backend(BackendKind::cpu, {.threads = workers})), meeting(workers) {}
  mutable Meeting meeting;

 protected:
  class Head : public ForwardingHead {
   public:
    Head(std::unique_ptr<BoundHead> inner, Meeting& meeting)
        : ForwardingHead(std::move(inner)), meeting_(meeting) {}
    void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
                std::span<std::byte> workspace) const override {
      meeting_.attend();
      ForwardingHead::reduce(queries, first, panel, workspace);
    }

   private:
    Meeting& meeting_;
  };
  std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const override {
    return std::make_unique<Head>(std::move(head), meeting);
  }
};

class CountingSink : public ReductionSink {
 public:
  void head(int64_t, const HeadTotals& totals) override {
    ++heads;
    rows += totals.rows();
  }
  int64_t heads = 0, rows = 0;
};

/// Notes the first row of every panel.
class OrderSink : public NullSink {
 public:
  explicit OrderSink(const TileRequest& request) : NullSink(request) {}
  void consume(const Tile& tile) override { rows.emplace_back(tile.task_index, tile.rows.begin); }
  std::vector<std::pair<int64_t, int64_t>> rows;
};

/// The panels of two heads of 96 × 96 entries in the order in which one worker computes them.
std::vector<std::pair<int64_t, int64_t>> panel_order(Mask mask, bool in_order) {
  const AttentionProblem problem = rule_problem(1, 2, 96, 96, 8, std::move(mask));
  const std::vector<HeadTask> tasks = all_heads(problem);
  const FakeBackend backend;
  TileRequest request = small_tiles(32);
  request.in_order = in_order;
  const TilePlan plan = plan_tiles(tasks, request, backend, kPlenty, 1);
  MemoryBudget budget(plan.bytes_total);
  OrderSink sink(request);
  REQUIRE(StreamingEngine(backend, budget).run(tasks, plan, sink));
  return sink.rows;
}

/// A sink that takes tiles in the order of the stream alone, as files do that grow.
class TurnSink : public NullSink {
 public:
  explicit TurnSink(const TileRequest& request) : NullSink(request) {}
  void begin(std::span<const HeadTask> tasks, int) override {
    int64_t panels = 0;
    for (const HeadTask& task : tasks) {
      first_panel_.push_back(panels);
      panels += ceil_div(task.num_rows(), request().chunk_rows);
    }
  }
  void consume(const Tile& tile) override {
    const int64_t turn =
        first_panel_[static_cast<size_t>(tile.task_index)] + tile.rows.begin / request().chunk_rows;
    std::unique_lock lock(mutex_);
    if (!turn_.wait_for(lock, std::chrono::seconds(20), [&] { return next_ == turn; })) {
      throw std::logic_error("nobody brings tile " + std::to_string(next_));
    }
    ++next_;
    turn_.notify_all();
  }
  int64_t taken() const { return next_; }

 private:
  std::vector<int64_t> first_panel_;
  std::mutex mutex_;
  std::condition_variable turn_;
  int64_t next_ = 0;
};

}  // namespace

TEST_CASE("heads of one panel keep all workers busy") {
  for (const int workers : {1, 2, 3, 8, 16}) {
    INFO(workers << " workers");
    const AttentionProblem problem = rule_problem(1, 24, 64, 64, 8);
    CHECK(workers_at_once(problem, 64, workers, FakeCall::emit_panel) == workers);
  }
}

TEST_CASE("heads of fewer panels than there are workers keep them all busy") {
  for (const int64_t panel_rows : {32, 16, 8}) {
    INFO(64 / panel_rows << " panels");
    const AttentionProblem problem = rule_problem(1, 24, 64, 64, 8);
    CHECK(workers_at_once(problem, panel_rows, 9, FakeCall::emit_panel) == 9);
  }
}

TEST_CASE("the last few heads are shared by all workers") {
  const AttentionProblem problem = rule_problem(1, 2, 64, 64, 8);
  CHECK(workers_at_once(problem, 16, 8, FakeCall::emit_panel) == 8);
}

TEST_CASE("heads are bound by as many workers as there are, and by no other thread") {
  const AttentionProblem problem = rule_problem(1, 24, 64, 64, 8);
  CHECK(workers_at_once(problem, 64, 6, FakeCall::bind) == 6);

  const std::vector<HeadTask> tasks = all_heads(problem);
  FakeBackend backend;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  backend.on_call = [&](FakeCall) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  const TileRequest request = small_tiles(64);
  const TilePlan plan = plan_tiles(tasks, request, backend, kPlenty, 3);
  MemoryBudget budget(plan.bytes_total);
  NullSink sink(request);
  REQUIRE(StreamingEngine(backend, budget).run(tasks, plan, sink));
  CHECK(threads.size() <= 3);
}

TEST_CASE("small heads are reduced by all workers at once") {
  const auto ones = [](const char* name) {
    return HeadTensor(make_tensor(name, DType::f32, {1, 80, 64, 4}, std::vector<float>(20480, 1)),
                      Layout::bhsd);
  };
  AttentionProblem::Parts parts;
  parts.q = ones("q");
  parts.k = ones("k");
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  const std::vector<ReductionJob> jobs = row_jobs(problem);
  const int workers = 12;
  const MeetingBackend backend(workers);
  MemoryBudget budget(kPlenty);
  const ReductionPlan plan = plan_reductions(jobs, backend, kPlenty);
  // A panel of 64 rows is not worth cutting where there are other heads.
  CHECK(plan.panels == 80);
  CountingSink sink;
  REQUIRE(ReductionStream(backend, budget).run(jobs, plan, sink));
  CHECK(backend.meeting.most() == workers);
  CHECK(sink.heads == 80);
  CHECK(sink.rows == 80 * 64);
}

TEST_CASE("what a sink holds of each head is planned for as often as heads are under way") {
  const AttentionProblem problem = rule_problem(1, 30, 64, 64, 8);
  const std::vector<ReductionJob> jobs = row_jobs(problem);
  const FakeBackend backend;
  const ReductionPlan plain = plan_reductions(jobs, backend, kPlenty, 4);
  const ReductionPlan holding = plan_reductions(jobs, backend, kPlenty, 4, 1000);
  REQUIRE(plain.bound_heads == 4);
  CHECK(holding.bytes_total == plain.bytes_total + 4 * 1000);
}

TEST_CASE("threads beyond the workers wait in the sink while the workers compute") {
  const AttentionProblem problem = rule_problem(1, 4, 100, 90, 8);
  const std::vector<HeadTask> tasks = all_heads(problem);
  const TileRequest request = small_tiles(16);
  FakeBackend backend;
  backend.num_workers = 2;
  const TilePlan plan = plan_tiles(tasks, request, backend, kPlenty, 0, 2);
  REQUIRE(plan.workers == 2);
  REQUIRE(plan.threads() == 4);
  std::atomic<int> computing{0}, most{0};
  backend.on_call = [&](FakeCall call) {
    if (call == FakeCall::bind) return;
    int seen = most;
    const int now = ++computing;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    --computing;
  };
  struct MeetingSink : NullSink {
    using NullSink::NullSink;
    void consume(const Tile&) override { meeting.attend(); }
    Meeting meeting{4};
  } sink(request);
  MemoryBudget budget(plan.bytes_total);
  REQUIRE(StreamingEngine(backend, budget).run(tasks, plan, sink));
  CHECK(sink.meeting.most() == 4);
  CHECK(most <= 2);
}

TEST_CASE("a small budget gives up workers that would wait for heads") {
  const AttentionProblem problem = rule_problem(1, 24, 64, 64, 8);
  const std::vector<HeadTask> tasks = all_heads(problem);
  FakeBackend backend;
  backend.num_workers = 8;
  const TileRequest request = small_tiles(64);
  TilePlan plan = plan_tiles(tasks, request, backend, kPlenty);
  CHECK(plan.workers == 8);
  CHECK(plan.bound_heads == 8);
  std::set<int> seen;
  while (plan.workers > 1) {
    plan = plan_tiles(tasks, request, backend, plan.bytes_total - 1);
    CHECK(plan.bound_heads == plan.workers);
    seen.insert(plan.workers);
  }
  CHECK(seen == std::set<int>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("rows with the most keys are computed first, unless their order matters") {
  using Order = std::vector<std::pair<int64_t, int64_t>>;
  const Order forwards{{0, 0}, {0, 32}, {0, 64}, {1, 0}, {1, 32}, {1, 64}};
  const Order backwards{{0, 64}, {0, 32}, {0, 0}, {1, 64}, {1, 32}, {1, 0}};
  CHECK(panel_order({}, false) == forwards);
  CHECK(panel_order(Mask::window(8), false) == forwards);
  CHECK(panel_order(Mask::causal(), false) == backwards);
  CHECK(panel_order(Mask::causal(), true) == forwards);
}

TEST_CASE("a sink that takes tiles in their order gets them, whoever is slow") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    const int64_t heads = pick(random, 1, 12);
    const AttentionProblem problem =
        rule_problem(1, heads, pick(random, 1, 90), 64, 8, Mask::causal());
    const std::vector<HeadTask> tasks = all_heads(problem);
    FakeBackend backend;
    backend.num_workers = static_cast<int>(pick(random, 1, 8));
    const uint64_t slow = random();
    std::atomic<uint64_t> binds{0};
    backend.on_call = [&](FakeCall call) {
      if (call != FakeCall::bind || ((slow >> (binds++ % 64)) & 1) == 0) return;
      for (int i = 0; i < 50; ++i) std::this_thread::yield();
    };
    TileRequest request = small_tiles(pick(random, 8, 40));
    request.in_order = true;
    const TilePlan plan = plan_tiles(tasks, request, backend, kPlenty);
    INFO("round " << round << ", " << heads << " heads, " << plan.describe());
    MemoryBudget budget(plan.bytes_total);
    TurnSink sink(request);
    REQUIRE(StreamingEngine(backend, budget).run(tasks, plan, sink));
    REQUIRE(sink.taken() == plan.tiles);
  }
}
