#include <mutex>
#include <set>

#include "core/reduce/reduction_stream.h"
#include "kernels/backend_factory.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kPlenty = int64_t{1} << 32;

/// Tells which rows it was asked to reduce.
class WatchedBackend : public ForwardingBackend {
 public:
  WatchedBackend() : ForwardingBackend(make_backend(BackendKind::cpu, {.threads = 2})) {}
  mutable std::mutex mutex;
  mutable std::set<int64_t> rows;

 protected:
  class Head : public ForwardingHead {
   public:
    Head(std::unique_ptr<BoundHead> inner, const WatchedBackend& backend)
        : ForwardingHead(std::move(inner)), backend_(backend) {}
    void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
                std::span<std::byte> workspace) const override {
      {
        const std::lock_guard lock(backend_.mutex);
        backend_.rows.insert(queries.index.begin(), queries.index.end());
      }
      ForwardingHead::reduce(queries, first, panel, workspace);
    }

   private:
    const WatchedBackend& backend_;
  };
  std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const override {
    return std::make_unique<Head>(std::move(head), *this);
  }
};

ReductionJob job_of(const AttentionProblem& problem) {
  ReductionRequest request;
  request.rows = true;
  const HeadTask task{&problem, 0, 0, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
  return {task, request};
}

}  // namespace

TEST_CASE("plans of reductions count what masks leave") {
  const AttentionProblem all = rule_problem(1, 1, 4096, 4096, 64);
  const AttentionProblem causal = rule_problem(1, 1, 4096, 4096, 64, Mask::causal());
  const auto plan = [](const AttentionProblem& problem) {
    const ReductionJob job = job_of(problem);
    return plan_reductions({&job, 1}, FakeBackend(), kPlenty);
  };
  CHECK(plan(all).entries == 4096.0 * 4096);
  CHECK(plan(all).flops == 2.0 * 64 * 4096 * 4096);
  CHECK(plan(causal).entries > 0.5 * 4096 * 4096);
  CHECK(plan(causal).entries < 0.6 * 4096 * 4096);
  CHECK(plan(causal).flops == 2 * 64 * plan(causal).entries);
  CHECK(plan(causal).rows == 4096);
}

TEST_CASE("the time of reductions is judged by rows from all over the dearest head") {
  const AttentionProblem small = rule_problem(1, 1, 300, 300, 8);
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(make_tensor("q", DType::f32, {6000, 8}, std::vector<float>(6000 * 8, 1)),
                       Layout::sd);
  parts.k = HeadTensor(make_tensor("k", DType::f32, {600, 8}, std::vector<float>(600 * 8, 1)),
                       Layout::sd);
  parts.id.kind = CallKind::cross;
  const AttentionProblem large = AttentionProblem::make(std::move(parts));
  const ReductionJob jobs[] = {job_of(small), job_of(large)};
  const WatchedBackend backend;
  MemoryBudget budget(kPlenty);
  const ReductionPlan plan = plan_reductions(jobs, backend, budget.limit(), 2);
  CHECK(ReductionStream(backend, budget).expected_seconds(jobs, plan) > 0);
  const auto sampled = static_cast<int64_t>(backend.rows.size());
  CHECK(sampled <= 8 * plan.panel_rows);
  CHECK(sampled < 6000);
  CHECK(*backend.rows.begin() < 1200);
  CHECK(*backend.rows.rbegin() > 4800);
}
