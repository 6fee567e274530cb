#include <deque>

#include "core/base/checked_math.h"
#include "core/stream/panel.h"
#include "core/stream/tile_plan.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kPlenty = int64_t{1} << 50;

/// The budget that the planner says is the smallest.
int64_t smallest_budget(std::span<const HeadTask> tasks, const TileRequest& request,
                        const TileBackend& backend) {
  const auto error = error_of([&] { plan_tiles(tasks, request, backend, 0); });
  REQUIRE(error.has_value());
  REQUIRE(error->code() == ErrorCode::resource);
  const std::string what = error->what();
  const std::string before = "the smallest that works is ";
  const size_t at = what.find(before);
  REQUIRE(at != std::string::npos);
  return std::stoll(what.substr(at + before.size()));
}

/// Block masks of 64 × 64 in which about one block in `one_in` is kept.
Mask block_mask(std::mt19937_64& random, int64_t queries, int64_t keys, int64_t one_in) {
  BlockMask mask{1, ceil_div(queries, 64), ceil_div(keys, 64), 64, 64, {}};
  for (int64_t i = 0; i < mask.query_blocks * mask.key_blocks; ++i) {
    mask.bits.push_back(pick(random, 1, one_in) == 1);
  }
  return Mask::blocks(mask);
}

/// A random stream: problems of different shapes, several heads, crops and row lists.
struct RandomStream {
  explicit RandomStream(std::mt19937_64& random, int64_t largest) {
    const ScoreFunction score{static_cast<ScoreFunction::Form>(pick(random, 0, 3))};
    request.entries = pick(random, 0, 3) > 0;
    if (!request.entries && score == ScoreFunction::sigmoid) request.entries = true;
    request.quantity =
        request.entries && pick(random, 0, 2) == 0 ? Quantity::logits : Quantity::weights;
    request.chunk_rows = pick(random, 1, 400);
    request.chunk_cols = pick(random, 1, 600);
    request.encoding = static_cast<Encoding>(pick(random, 0, 3));
    for (int64_t p = pick(random, 1, 2); p > 0; --p) {
      const int64_t queries = pick(random, 1, largest), keys = pick(random, 1, largest);
      const int64_t kind = pick(random, 0, 3);
      const Mask mask = kind == 0   ? Mask::window(pick(random, 0, 300))
                        : kind == 1 ? block_mask(random, queries, keys, 8)
                                    : Mask();
      problems.push_back(rule_problem(1, 4, queries, keys, pick(random, 1, 128), mask, score));
      for (int64_t t = pick(random, 1, 3); t > 0; --t) add_task(random, problems.back());
    }
    backend.num_workers = static_cast<int>(pick(random, 1, 6));
    backend.head_cost = {pick(random, 0, 1 << 20), pick(random, 0, 1 << 16)};
    backend.bytes_a_row = pick(random, 0, 1000);
    backend.bytes_an_entry = pick(random, 0, 4);
    backend.stash_bytes_an_entry = pick(random, 0, 8);
  }

  void add_task(std::mt19937_64& random, const AttentionProblem& problem) {
    HeadTask task;
    task.problem = &problem;
    task.head = pick(random, 0, 3);
    const auto crop = [&](int64_t extent) {
      if (pick(random, 0, 1) == 0) return IndexRange{0, extent};
      const int64_t begin = pick(random, 0, extent - 1);
      return IndexRange{begin, pick(random, begin + 1, extent)};
    };
    task.keys = crop(problem.num_keys());
    task.rows = crop(problem.num_queries());
    if (pick(random, 0, 3) == 0) {
      auto& list = lists.emplace_back();
      for (int64_t i = task.rows.begin; i < task.rows.end; i += pick(random, 1, 3)) {
        list.push_back(i);
      }
      task.row_list = list;
    }
    tasks.push_back(task);
  }

  std::deque<AttentionProblem> problems;
  std::deque<std::vector<int64_t>> lists;
  std::vector<HeadTask> tasks;
  TileRequest request;
  FakeBackend backend;
};

/// Checks the rules that every plan must keep, derived from the stream alone.
void check_plan(const RandomStream& s, const TilePlan& plan, int64_t budget) {
  REQUIRE(plan.bytes_total <= budget);
  REQUIRE(plan.bytes_total == plan.bytes_bound + plan.workers * plan.bytes_per_worker);
  REQUIRE(plan.workers >= 1);
  REQUIRE(plan.workers <= s.backend.num_workers);
  REQUIRE(plan.panel_rows >= 1);
  REQUIRE(plan.panel_rows <= s.request.chunk_rows);
  const auto heads = static_cast<int64_t>(s.tasks.size());
  int64_t resident = 0, rows = 0, row_bytes = 0, tiles = 0, chunks = 0, most_panels = 0;
  bool norms = false;
  for (const HeadTask& task : s.tasks) {
    resident = std::max(resident, s.backend.bind_cost(*task.problem).resident);
    rows = std::max(rows, std::min(task.num_rows(), s.request.chunk_rows));
    row_bytes = std::max(row_bytes, task.problem->q().row_bytes());
    const int64_t task_chunks = ceil_div(task.keys.size(), s.request.chunk_cols);
    chunks = std::max(chunks, task_chunks);
    most_panels = std::max(most_panels, ceil_div(task.num_rows(), plan.panel_rows));
    norms |= is_normalised(task.problem->score()) && s.request.quantity == Quantity::weights;
    tiles += ceil_div(task.num_rows(), plan.panel_rows) *
             (s.request.entries ? ceil_div(task_chunks, plan.segment_chunks) : 1);
  }
  REQUIRE(plan.tiles == tiles);
  REQUIRE(plan.bound_heads >= 1);
  // A worker binds or computes one head at a time.
  REQUIRE(plan.bound_heads <= std::min<int64_t>(plan.workers, heads));
  REQUIRE((plan.bound_heads == heads || plan.bound_heads * most_panels >= plan.workers));
  REQUIRE(plan.bytes_bound == plan.bound_heads * (resident + s.backend.head_cost.transient));
  if (!s.request.entries) {
    REQUIRE(plan.active_chunks == 0);
    return;
  }
  // Chunks are written whole: panels are as high as they.
  REQUIRE(plan.panel_rows == rows);
  REQUIRE(plan.segment_chunks >= 1);
  REQUIRE(plan.active_chunks <= plan.segment_chunks);
  if (plan.one_product && norms) REQUIRE(plan.segment_chunks == chunks);
  const int64_t chunk_bytes =
      s.request.chunk_rows * s.request.chunk_cols * encoding_bytes(s.request.encoding);
  REQUIRE(plan.bytes_per_worker >= plan.active_chunks * chunk_bytes + rows * row_bytes +
                                       (norms ? rows * int64_t{sizeof(RowNorm)} : 0));
}

/// Heads that keep the plan's workers busy: twice as many as they compute panels of, where those
/// have as few panels as any.
int64_t busy_heads(const RandomStream& s, const TilePlan& plan) {
  int64_t fewest = kPlenty;
  for (const HeadTask& task : s.tasks) {
    fewest = std::min(fewest, ceil_div(task.num_rows(), plan.panel_rows));
  }
  const int64_t wanted = std::min<int64_t>(plan.workers, 2 * ceil_div(plan.workers, fewest));
  return std::min(wanted, static_cast<int64_t>(s.tasks.size()));
}

}  // namespace

TEST_CASE("thousands of random streams: plans keep the budget, and the smallest budget is exact") {
  std::mt19937_64 random(2024);
  for (int round = 0; round < 2000; ++round) {
    INFO("round " << round);
    const RandomStream s(random, 3000);
    const TilePlan best = plan_tiles(s.tasks, s.request, s.backend, kPlenty);
    check_plan(s, best, kPlenty);
    REQUIRE(best.one_product);
    REQUIRE(best.bound_heads == busy_heads(s, best));
    const int64_t smallest = smallest_budget(s.tasks, s.request, s.backend);
    REQUIRE(smallest <= best.bytes_total);
    const TilePlan least = plan_tiles(s.tasks, s.request, s.backend, smallest);
    check_plan(s, least, smallest);
    REQUIRE(least.bytes_total == smallest);
    REQUIRE(error_of([&] { plan_tiles(s.tasks, s.request, s.backend, smallest - 1); }).has_value());
    // In between: never over, and never fewer workers for more memory.
    int workers = least.workers;
    for (int step = 1; step <= 4; ++step) {
      const int64_t budget = smallest + (best.bytes_total - smallest) * step / 4;
      const TilePlan plan = plan_tiles(s.tasks, s.request, s.backend, budget);
      check_plan(s, plan, budget);
      REQUIRE(plan.workers >= workers);
      REQUIRE(plan.entries == best.entries);
      workers = plan.workers;
    }
  }
}

TEST_CASE("memory is given up in order: the next head, columns for a second product, workers") {
  const AttentionProblem problem = rule_problem(1, 2, 4096, 4096, 64);
  const std::vector<HeadTask> tasks{{&problem, 0, 0, {0, 4096}, {}, {0, 4096}},
                                    {&problem, 0, 1, {0, 4096}, {}, {0, 4096}}};
  FakeBackend backend;
  const TileRequest request;
  const auto plan = [&](int64_t budget) { return plan_tiles(tasks, request, backend, budget); };
  const TilePlan best = plan(kPlenty);
  CHECK(best.workers == 3);
  CHECK(best.bound_heads == 2);
  CHECK(best.one_product);
  CHECK(best.segment_chunks == 8);
  CHECK(best.entries == 2 * 4096 * 4096);
  CHECK(best.flops == 2.0 * 64 * 2 * 4096 * 4096);
  const TilePlan no_prefetch = plan(best.bytes_total - 1);
  CHECK(no_prefetch.workers == 3);
  CHECK(no_prefetch.bound_heads == 1);
  CHECK(no_prefetch.one_product);
  const TilePlan two_products = plan(no_prefetch.bytes_total - 1);
  CHECK(two_products.workers == 3);
  CHECK_FALSE(two_products.one_product);
  CHECK(two_products.flops == 2 * best.flops);
  CHECK(two_products.bytes_total < no_prefetch.bytes_total);
  int64_t segment = two_products.segment_chunks;
  TilePlan last = two_products;
  // Step by step down to one chunk with all workers, then fewer workers.
  while (true) {
    const TilePlan next = plan(last.bytes_total - 1);
    if (next.workers < 3) break;
    CHECK(next.segment_chunks <= segment);
    segment = next.segment_chunks;
    last = next;
  }
  CHECK(segment == 1);
  CHECK(last.bound_heads == 1);
  CHECK(plan_tiles(tasks, request, backend, kPlenty, 1).workers == 1);
  CHECK(plan_tiles(tasks, request, backend, kPlenty, 16).workers == 16);
  CHECK(best.describe().find("3 workers") != std::string::npos);
  CHECK(two_products.describe().find("two products") != std::string::npos);
}

TEST_CASE("threads that wait for a disk are added where there is memory, and given up first") {
  const AttentionProblem problem = rule_problem(1, 2, 4096, 4096, 64);
  const std::vector<HeadTask> tasks{{&problem, 0, 0, {0, 4096}, {}, {0, 4096}},
                                    {&problem, 0, 1, {0, 4096}, {}, {0, 4096}}};
  const FakeBackend backend;
  const TileRequest request;
  const auto plan = [&](int64_t budget, int waiting) {
    return plan_tiles(tasks, request, backend, budget, 0, waiting);
  };
  const TilePlan plain = plan(kPlenty, 0);
  const TilePlan more = plan(kPlenty, 2);
  CHECK(plain.waiting_workers == 0);
  CHECK(more.waiting_workers == 2);
  CHECK(more.workers == plain.workers);
  CHECK(more.threads() == plain.workers + 2);
  CHECK(more.bytes_total == plain.bytes_total + 2 * plain.bytes_per_worker);
  CHECK(more.describe().find("3 workers and 2 at the disk") != std::string::npos);
  CHECK(plan(more.bytes_total - 1, 2).waiting_workers == 1);
  const TilePlan none = plan(plain.bytes_total, 2);
  CHECK(none.waiting_workers == 0);
  CHECK(none.bytes_total == plain.bytes_total);
  // Nothing for them to do.
  const std::vector<HeadTask> low{{&problem, 0, 0, {0, 900}, {}, {0, 4096}}};
  CHECK(plan_tiles(low, request, backend, kPlenty, 2, 4).threads() == 3);
}

TEST_CASE("a sparse mask needs less memory and work than a dense one") {
  std::mt19937_64 random(9);
  const auto plan = [&](int64_t kept_of_100) {
    BlockMask blocks{1, 20, 20, 512, 512, {}};
    for (int i = 0; i < 400; ++i) blocks.bits.push_back(pick(random, 1, 100) <= kept_of_100);
    const AttentionProblem problem = rule_problem(1, 1, 10240, 10240, 64, Mask::blocks(blocks));
    const HeadTask task{&problem, 0, 0, {0, 10240}, {}, {0, 10240}};
    return plan_tiles({&task, 1}, {}, FakeBackend(), kPlenty);
  };
  const TilePlan sparse = plan(10), dense = plan(90);
  CHECK(sparse.active_chunks < dense.active_chunks);
  CHECK(sparse.bytes_total < dense.bytes_total);
  CHECK(sparse.entries < dense.entries);
  CHECK(sparse.flops < dense.flops);
}

TEST_CASE("logits are delivered under a mask too, and take one product in any segments") {
  const AttentionProblem problem = rule_problem(1, 1, 100, 4096, 8, Mask::causal());
  const HeadTask task{&problem, 0, 0, {0, 100}, {}, {0, 4096}};
  TileRequest request;
  request.quantity = Quantity::logits;
  const FakeBackend backend;
  const TilePlan best = plan_tiles({&task, 1}, request, backend, kPlenty);
  CHECK(best.active_chunks == 8);
  CHECK(best.entries == 100 * 4096);
  CHECK(best.workers == 1);  // there is but one panel
  CHECK(best.panel_rows == 100);
  const TilePlan less = plan_tiles({&task, 1}, request, backend, best.bytes_total - 1);
  CHECK(less.one_product);
  CHECK(less.segment_chunks < 8);
  CHECK(less.flops == best.flops);
  request.quantity = Quantity::weights;
  // Keys from 100 on are beyond every row.
  CHECK(plan_tiles({&task, 1}, request, backend, kPlenty).active_chunks == 1);
}

TEST_CASE("norms alone take low panels where memory is short") {
  const AttentionProblem problem = rule_problem(1, 1, 1000, 1000, 128);
  const HeadTask task{&problem, 0, 0, {0, 1000}, {}, {0, 1000}};
  TileRequest request;
  request.entries = false;
  const FakeBackend backend;
  const TilePlan best = plan_tiles({&task, 1}, request, backend, kPlenty);
  CHECK(best.panel_rows == 384);
  CHECK(best.tiles == 3);
  CHECK(best.entries == 1000000);
  const int64_t smallest = smallest_budget({&task, 1}, request, backend);
  const TilePlan least = plan_tiles({&task, 1}, request, backend, smallest);
  CHECK(least.panel_rows == 1);
  CHECK(least.tiles == 1000);
}

TEST_CASE("sizes that overflow are refused, not wrapped around") {
  const AttentionProblem problem = rule_problem(1, 1, 10, 10, 8);
  const HeadTask task{&problem, 0, 0, {0, 10}, {}, {0, 10}};
  TileRequest request;
  request.chunk_rows = request.chunk_cols = int64_t{1} << 40;
  CHECK(refused(
            [&] {
              plan_tiles({&task, 1}, request, FakeBackend(), kPlenty);
            },
            ErrorCode::resource, {"too large"}) == "");
  FakeBackend backend;
  backend.head_cost.resident = int64_t{1} << 62;
  backend.head_cost.transient = int64_t{1} << 62;
  CHECK(refused(
            [&] {
              plan_tiles({&task, 1}, {}, backend, kPlenty);
            },
            ErrorCode::resource, {"too"}) == "");
}

TEST_CASE("what a causal mask leaves is counted in panels") {
  const AttentionProblem problem = rule_problem(1, 1, 1000, 1000, 8, Mask::causal());
  const HeadTask task{&problem, 0, 0, {0, 1000}, {}, {0, 1000}};
  CHECK(unmasked_entries(task, {0, 100}, 100) == 100 * 100);
  CHECK(unmasked_entries(task, {100, 200}, 100) == 100 * 200);
  CHECK(unmasked_entries(task, {900, 1000}, 300) == 100 * 1000);
  CHECK(full_flops(task) == 2.0 * 8 * 1000 * 1000);
}

TEST_CASE("panels that stand for a task are spread over it") {
  const AttentionProblem problem = rule_problem(1, 1, 1000, 50, 8);
  const HeadTask task{&problem, 0, 0, {10, 990}, {}, {0, 50}};
  // 98 panels of 10 rows: numbers 16, 49 and 81.
  const std::vector<int64_t> rows = sampled_panels(task, 10, 3);
  REQUIRE(rows.size() == 30);
  CHECK(rows.front() == 170);
  CHECK(rows[9] == 179);
  CHECK(rows[10] == 500);
  CHECK(rows[20] == 820);
  CHECK(sampled_panels(task, 100, 10).size() == 980);
  const std::vector<int64_t> list{3, 5, 8, 13, 21, 34, 55};
  const HeadTask chosen{&problem, 0, 0, {}, list, {0, 50}};
  CHECK(sampled_panels(chosen, 2, 2) == std::vector<int64_t>{8, 13, 55});
  CHECK(sampled_panels(chosen, 2, 4) == list);
}
