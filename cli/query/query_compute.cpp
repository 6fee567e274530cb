#include "cli/query/query_compute.h"

#include <fmt/core.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/run/forecast.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/stream_run.h"
#include "cli/run/team_steps.h"
#include "core/products/row_collector.h"
#include "core/products/value_norms.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

/// Bytes of the values that the output holds, before any mean.
int64_t value_bytes(const QueryTasks& q) {
  int64_t bytes = 0;
  for (size_t i = 0; i < q.tasks.size(); ++i) bytes += q.shown(i).tokens() * 4;
  return bytes;
}

/// The plan of a query whose stream has these tasks.
void print_query_plan(const QueryRun& run, std::span<const HeadTask> tasks,
                      const TileRequest& request, const TilePlan& tiles) {
  RunPlan plan = forecast_run("query", tasks, request, tiles, run.backend, run.budget, true);
  plan.heads = static_cast<int64_t>(run.tasks.tasks.size());
  plan.payload_bytes = value_bytes(run.tasks);
  plan.payload_word = "values";
  plan.picture = run.picture;
  if (run.tasks.reverse) plan.seconds_note = " (less what the cache has)";
  if (run.team != nullptr && !run.team->is_alone()) share_forecast(plan, *run.team, plan.heads);
  print_plan(plan, run.request.json);
}

void collect_rows(const QueryRun& run, const TilePlan& plan, RowCollector& rows) {
  const std::span<const HeadTask> tasks = run.tasks.tasks;
  const CheckedRun checked = CheckedRun::of_rows(run.console, tasks, run.backend);
  try {
    if (!run_tiles({run.console, "query", run.backend, run.budget, checked.stop()}, tasks, plan,
                   rows)) {
      throw interrupted_error(kNothingWritten);
    }
  } catch (const Error& error) {
    // Of several heads, whichever came to a NaN in time: the first in their order is named.
    if (error.code() == ErrorCode::value) checked.scan_all(tasks, run.backend);
    throw;
  }
}

void say_cache_use(const QueryRun& run, const ReverseQuery& query, bool enabled) {
  if (!query.store_problem().empty()) {
    run.console.warn("warning: " + query.store_problem());
  }
  if (!enabled || query.normed() == 0) return;
  const bool shared = run.team != nullptr && !run.team->is_alone();
  run.console.say(fmt::format("row sums: {} from the cache, {} computed{}", query.kept(),
                              query.normed() - query.kept(), shared ? ", by process 0" : ""));
}

}  // namespace

std::optional<QueryValues> compute_rows(const QueryRun& run) {
  const std::vector<HeadTask>& tasks = run.tasks.tasks;
  const int threads = run.request.run.threads;
  RowCollector rows(tasks, parse_domain(run.request.domain),
                    threads > 0 ? threads : run.backend.workers(), run.budget,
                    run.tasks.domain_keys_of_tasks());
  const TilePlan plan = plan_tiles(tasks, rows.request(), run.backend, run.budget.room(), threads);
  if (run.request.dry_run) {
    print_query_plan(run, tasks, rows.request(), plan);
    return std::nullopt;
  }
  collect_rows(run, plan, rows);
  QueryValues result;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto task = static_cast<int64_t>(i);
    result.values.push_back(rows.take_mean(task));
    result.lse.push_back(rows.lse(task));
  }
  result.reservation = rows.take_reservation();
  if (run.request.weighting == "value") weigh_by_values(tasks, result.values, run.budget);
  return result;
}

std::vector<ReverseTask> reverse_tasks(const QueryRequest& request, const QueryTasks& q) {
  std::vector<ReverseTask> tasks;
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    const HeadTask& head = q.tasks[i];
    const ChosenTokens& chosen = q.tokens_of(i);
    ReverseTask task{
        head.problem,    q.call_of(i).mask.get(),          head.batch, head.head, chosen.tokens,
        chosen.shares(), &q.domain_keys(q.call_of_task[i])};
    for (size_t k = 0; k < task.keys.size() && request.weighting == "value"; ++k) {
      const IndexRange key{task.keys[k], task.keys[k] + 1};
      task.factors[k] *= value_norms(*head.problem, head.batch, head.head, key).front();
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::optional<QueryValues> compute_columns(const QueryRun& run, LseCache& cache) {
  const std::vector<ReverseTask> tasks = reverse_tasks(run.request, run.tasks);
  ReverseQuery query(tasks, {parse_domain(run.request.domain), run.request.run.threads},
                     run.backend, run.budget);
  const TilePlan plan = query.plan();
  if (run.request.dry_run) {
    print_query_plan(run, query.norm_tasks(), query.norm_request(), plan);
    return std::nullopt;
  }
  QueryValues result;
  {
    const CheckedRun checked(run.console, run.tasks.tasks, run.backend);
    constexpr double kTicks = 1000;
    const auto ticks = static_cast<double>(query.steps()) * kTicks;
    Progress progress(run.console, "query", static_cast<int64_t>(ticks),
                      static_cast<double>(plan.entries) / ticks, "entries");
    result.values = query.run(cache.enabled() ? &cache : nullptr,
                              {checked.stop(), [&](double steps) {
                                 progress.update(static_cast<int64_t>(steps * kTicks));
                               }});
  }
  say_cache_use(run, query, cache.enabled());
  result.lse.assign(tasks.size(), std::numeric_limits<double>::quiet_NaN());
  result.reservation = query.take_reservation();
  return result;
}

}  // namespace attnscope
