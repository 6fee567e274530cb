#include "cli/run/forecast.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/stream/null_sink.h"
#include "core/stream/panel.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

struct Sample {
  double flops = 0;
  double seconds = 0;
};

/// Computes some panels of a task, spread over it: masks leave more of some rows than of others.
Sample compute(HeadTask task, int64_t panels, const TileRequest& request, const TilePlan& plan,
               const TileBackend& backend, MemoryBudget& budget) {
  const std::vector<int64_t> rows = sampled_panels(task, plan.panel_rows, panels);
  task.row_list = rows;
  const TilePlan part = plan_tiles({&task, 1}, request, backend, budget.room(), plan.workers);
  NullSink sink(request);
  const auto start = std::chrono::steady_clock::now();
  StreamingEngine(backend, budget).run({&task, 1}, part, sink);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return {part.flops, spent.count()};
}

bool wants_estimate(bool dry_run, double flops) {
  // Some seconds on a few cores.
  constexpr double kLongFlops = 2e12;
  return dry_run || flops > kLongFlops;
}

}  // namespace

double expected_seconds(std::span<const HeadTask> tasks, const TileRequest& request,
                        const TilePlan& plan, const TileBackend& backend, MemoryBudget& budget) {
  if (plan.flops <= 0) return 0;
  const HeadTask& dearest = *std::max_element(
      tasks.begin(), tasks.end(),
      [](const HeadTask& a, const HeadTask& b) { return full_flops(a) < full_flops(b); });
  // Both samples spend the same time on packing the keys: their difference is free of it.
  const Sample few = compute(dearest, plan.workers, request, plan, backend, budget);
  const Sample more = compute(dearest, 3 * int64_t{plan.workers}, request, plan, backend, budget);
  const double flops = more.flops - few.flops;
  const double seconds = more.seconds - few.seconds;
  if (flops <= 0 || seconds <= 0) {
    return more.flops <= 0 ? more.seconds : plan.flops / more.flops * more.seconds;
  }
  const double packing = std::max(0.0, few.seconds - few.flops / flops * seconds);
  return packing + plan.flops / flops * seconds;
}

RunPlan forecast_run(std::string command, std::span<const HeadTask> tasks,
                     const TileRequest& request, const TilePlan& plan, const TileBackend& backend,
                     MemoryBudget& budget, bool dry_run) {
  RunPlan run = plan_of(std::move(command), static_cast<int64_t>(tasks.size()), plan, budget);
  if (wants_estimate(dry_run, plan.flops)) {
    run.seconds = expected_seconds(tasks, request, plan, backend, budget);
  }
  return run;
}

RunPlan forecast_run(std::string command, std::span<const ReductionJob> jobs,
                     const ReductionPlan& plan, const TileBackend& backend, MemoryBudget& budget,
                     bool dry_run) {
  RunPlan run = plan_of(std::move(command), static_cast<int64_t>(jobs.size()), plan, budget);
  if (wants_estimate(dry_run, plan.flops)) {
    run.seconds = ReductionStream(backend, budget).expected_seconds(jobs, plan);
  }
  return run;
}

}  // namespace attnscope
