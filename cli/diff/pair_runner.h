#pragma once

#include <functional>
#include <memory>

#include "cli/common/console.h"
#include "cli/diff/compared_pair.h"
#include "cli/run/run_plan.h"
#include "core/base/memory_budget.h"

namespace attnscope {

/// Makes the sink that takes the rows of a pair.
using MakePairSink = std::function<std::unique_ptr<PairSink>(const ComparedPair&)>;
/// Uses that sink once it has all of them; `pair`: the place of the pair.
using TakePairSink = std::function<void(size_t pair, PairSink&)>;

/// Streams pairs, one after the other. Borrows all that it is given.
class PairRunner {
 public:
  PairRunner(const DiffSides& sides, MemoryBudget& budget, int threads, const Console& console)
      : sides_(sides), budget_(budget), threads_(threads), console_(console) {}

  MemoryBudget& budget() const { return budget_; }
  /// Work and memory of all pairs, without the time. Throws Error(resource) where one is too big.
  RunPlan plan(const std::vector<ComparedPair>& pairs, const MakePairSink& make) const;
  /// How long that is: by some rows of the first pair, which are compared now; −1 where the budget
  /// does not have their numbers.
  double seconds(const std::vector<ComparedPair>& pairs, const RunPlan& plan) const;
  /// With progress. Throws Error(interrupted) where it was stopped.
  void run(const std::vector<ComparedPair>& pairs, const RunPlan& plan, const MakePairSink& make,
           const TakePairSink& take, const std::stop_token& stop) const;

 private:
  DifferencePlan plan_of_pair(const OpenedPair& opened, const PairSink& sink) const;

  const DiffSides& sides_;
  MemoryBudget& budget_;
  const int threads_;
  const Console& console_;
};

}  // namespace attnscope
