#include "tests/core/products/product_case.h"

#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/catch.h"

namespace attnscope::test {

AttentionCase joint_case(std::string_view mask, ScoreFunction score, unsigned seed) {
  AttentionCase c;
  c.shape = {1, 4, 2, 64, 64, 8};
  c.mask = mask;
  c.score = score;
  c.seed = seed;
  c.grid = {3, 4, 5};
  c.text = 4;
  c.place = TextPlace::start;
  return c;
}

HeadTask whole_map(const AttentionProblem& problem, int64_t head, int64_t batch) {
  return {&problem, batch, head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
}

std::vector<std::unique_ptr<TileBackend>> two_backends(int threads) {
  std::vector<std::unique_ptr<TileBackend>> backends;
  backends.push_back(make_reference_backend(threads));
  backends.push_back(make_cpu_backend({threads}));
  return backends;
}

bool near(double got, double expected) {
  return std::abs(got - expected) <= 1e-7 + 2e-4 * std::abs(expected);
}

int64_t count_wrong(const std::vector<float>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return -1;
  int64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += !near(double{got[i]}, expected[i]);
  return wrong;
}

void run_tasks(std::span<const HeadTask> tasks, TileSink& sink, const TileBackend& backend,
               MemoryBudget& budget, int threads) {
  const TilePlan plan = plan_tiles(tasks, sink.request(), backend, budget.available(), threads);
  REQUIRE(StreamingEngine(backend, budget).run(tasks, plan, sink));
}

void BudgetedReductions::reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) {
  if (plan_only) return;
  const ReductionPlan plan = plan_reductions(jobs, backend_, budget_.available(), threads_);
  REQUIRE(ReductionStream(backend_, budget_).run(jobs, plan, sink));
}

}  // namespace attnscope::test
