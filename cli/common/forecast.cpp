#include "cli/common/forecast.h"

#include <algorithm>
#include <chrono>

#include "core/stream/null_sink.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

struct Sample {
  double flops = 0;
  double seconds = 0;
};

/// Computes the first `rows` rows of a task.
Sample compute(HeadTask task, int64_t rows, const TileRequest& request, const TilePlan& plan,
               const TileBackend& backend, MemoryBudget& budget) {
  rows = std::min(rows, task.num_rows());
  if (task.row_list.empty()) {
    task.rows.end = task.rows.begin + rows;
  } else {
    task.row_list = task.row_list.first(static_cast<size_t>(rows));
  }
  const TilePlan part = plan_tiles({&task, 1}, request, backend, budget.available(), plan.workers);
  NullSink sink(request);
  const auto start = std::chrono::steady_clock::now();
  StreamingEngine(backend, budget).run({&task, 1}, part, sink);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return {part.flops, spent.count()};
}

}  // namespace

double expected_seconds(std::span<const HeadTask> tasks, const TileRequest& request,
                        const TilePlan& plan, const TileBackend& backend, MemoryBudget& budget) {
  if (plan.flops <= 0) return 0;
  // What both samples spend on packing the keys falls out of their difference.
  const int64_t rows = plan.panel_rows * plan.workers;
  const Sample few = compute(tasks.front(), rows, request, plan, backend, budget);
  const Sample more = compute(tasks.front(), 3 * rows, request, plan, backend, budget);
  const double flops = more.flops - few.flops;
  const double seconds = more.seconds - few.seconds;
  if (flops <= 0 || seconds <= 0) {
    return more.flops <= 0 ? more.seconds : plan.flops / more.flops * more.seconds;
  }
  const double packing = std::max(0.0, few.seconds - few.flops / flops * seconds);
  return packing + plan.flops / flops * seconds;
}

}  // namespace attnscope
