#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/products/map_reductions.h"
#include "core/stream/streaming_engine.h"
#include "tests/support/backend/attention_case.h"

namespace attnscope::test {

/// 4 heads over 2 of K; 4 text tokens before 3 frames of 4 x 5 (64 tokens).
AttentionCase joint_case(std::string_view mask = "none",
                         ScoreFunction score = ScoreFunction::softmax, unsigned seed = 1);

/// All of one head's map.
HeadTask whole_map(const AttentionProblem& problem, int64_t head, int64_t batch = 0);

/// Reference and cpu.
std::vector<std::unique_ptr<TileBackend>> two_backends(int threads = 2);

/// True where `got`, computed in float32, is `expected` up to rounding.
bool near(double got, double expected);
/// How many of the values are not; −1 where the sizes differ.
int64_t count_wrong(const std::vector<float>& got, const std::vector<double>& expected);

/// Runs tasks into a sink.
void run_tasks(std::span<const HeadTask> tasks, TileSink& sink, const TileBackend& backend,
               MemoryBudget& budget, int threads = 0);

/// Runs reductions in a budget of its own.
class BudgetedReductions : public ReductionRunner {
 public:
  explicit BudgetedReductions(const TileBackend& backend, int64_t budget = int64_t{64} << 20,
                              int threads = 0)
      : backend_(backend), budget_(budget), threads_(threads) {}
  MemoryBudget& budget() override { return budget_; }
  bool is_plan_only() const override { return plan_only; }
  void reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) override;

  bool plan_only = false;

 private:
  const TileBackend& backend_;
  MemoryBudget budget_;
  int threads_;
};

}  // namespace attnscope::test
