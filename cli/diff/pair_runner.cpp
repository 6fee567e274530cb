#include "cli/diff/pair_runner.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/run/run_steps.h"
#include "core/base/budget_error.h"
#include "core/problem/sampled_rows.h"

namespace attnscope {
namespace {

/// Of a run that reads exports alone: unpacking is shared by as many threads as are worth it.
int reading_threads() {
  constexpr unsigned kMost = 8;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

}  // namespace

DifferencePlan PairRunner::plan_of_pair(const OpenedPair& opened, const PairSink& sink) const {
  const int usual = sides_.backend != nullptr ? sides_.backend->workers() : reading_threads();
  return plan_pair(*opened.a, *opened.b, sink, budget_.room(), threads_ > 0 ? threads_ : usual);
}

RunPlan PairRunner::plan(const std::vector<ComparedPair>& pairs, const MakePairSink& make) const {
  RunPlan plan;
  plan.command = "diff";
  plan.heads = std::ssize(pairs);
  plan.budget_bytes = budget_.limit();
  plan.rows = 0;
  for (const ComparedPair& pair : pairs) {
    const auto sink = make(pair);
    const DifferencePlan each = plan_of_pair(OpenedPair(sides_, pair), *sink);
    plan.flops += each.flops;
    plan.entries += static_cast<int64_t>(each.entries);
    plan.memory_bytes = std::max(plan.memory_bytes, each.bytes);
    plan.workers = std::max(plan.workers, each.workers);
    *plan.rows += pair.rows;
  }
  return plan;
}

double PairRunner::seconds(const std::vector<ComparedPair>& pairs, const RunPlan& plan) const {
  constexpr int64_t kRows = 192;
  ComparedPair few = pairs.front();
  const std::vector<int64_t> places = sampled_rows(few.rows, kRows);
  for (SideCut* const cut : {&few.cut_a, &few.cut_b}) {
    std::vector<int64_t> queries;
    for (const int64_t row : places) {
      queries.push_back(cut->list ? (*cut->list)[static_cast<size_t>(row)] : row);
    }
    cut->list = shared_list(std::move(queries), nullptr);
  }
  few.rows = std::ssize(places);
  RowNumbers sink({few.normalised, few.whole});
  OpenedPair opened(sides_, few);
  DifferencePlan own;
  try {
    own = plan_of_pair(opened, sink);
  } catch (const BudgetError&) {
    // What the run makes of a pair may take less than these numbers do.
    return -1;
  }
  const auto start = std::chrono::steady_clock::now();
  stream_pair(*opened.a, *opened.b, sink, own, budget_);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return own.flops > 0 ? spent.count() * plan.flops / own.flops : spent.count();
}

void PairRunner::run(const std::vector<ComparedPair>& pairs, const RunPlan& plan,
                     const MakePairSink& make, const TakePairSink& take,
                     const std::stop_token& stop) const {
  constexpr double kTicks = 1000;
  const auto count = static_cast<double>(pairs.size());
  Progress progress(console_, "diff", static_cast<int64_t>(count * kTicks),
                    static_cast<double>(plan.entries) / (count * kTicks), "entries");
  for (size_t i = 0; i < pairs.size(); ++i) {
    const StreamControl control{
        stop,
        [&](const StreamProgress& p) {
          const double part =
              static_cast<double>(p.tiles_done) / static_cast<double>(p.tiles_total);
          progress.update(static_cast<int64_t>((static_cast<double>(i) + part) * kTicks));
        },
        {}};
    const auto sink = make(pairs[i]);
    OpenedPair opened(sides_, pairs[i]);
    const DifferencePlan own = plan_of_pair(opened, *sink);
    if (!stream_pair(*opened.a, *opened.b, *sink, own, budget_, control)) {
      throw interrupted_error(kNothingWritten);
    }
    take(i, *sink);
  }
}

}  // namespace attnscope
