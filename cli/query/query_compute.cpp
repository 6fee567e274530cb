#include "cli/query/query_compute.h"

#include <fmt/core.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/common/forecast.h"
#include "cli/common/interrupt.h"
#include "cli/query/reverse_query.h"
#include "core/base/error.h"
#include "core/products/row_collector.h"
#include "core/products/value_norms.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/value_check.h"

namespace attnscope {
namespace {

/// Bytes of the values that the output holds, before any mean.
int64_t value_bytes(const QueryTasks& q) {
  int64_t bytes = 0;
  for (size_t i = 0; i < q.tasks.size(); ++i) bytes += q.shown(i).tokens() * 4;
  return bytes;
}

void print_plan(const QueryRun& run, const TilePlan& plan, double seconds) {
  const int64_t memory = plan.bytes_total + run.budget.used();
  if (run.request.json) {
    print_json({{"format", "attnscope-plan/1"},
                {"heads", run.tasks.tasks.size()},
                {"payload_bytes", value_bytes(run.tasks)},
                {"entries", plan.entries},
                {"flops", plan.flops},
                {"expected_seconds", seconds},
                {"memory_bytes", memory},
                {"budget_bytes", run.budget.limit()},
                {"workers", plan.workers}},
               false);
    return;
  }
  fmt::print("heads          {}\nvalues         {}\narithmetic     {}FLOP\n",
             run.tasks.tasks.size(), format_bytes(value_bytes(run.tasks)),
             format_count(plan.flops));
  fmt::print("expected time  {}{}\nmemory         {} of {}\nplan           {}\n",
             format_seconds(seconds), run.tasks.reverse ? " (less what the cache has)" : "",
             format_bytes(memory), format_bytes(run.budget.limit()), plan.describe());
}

void collect_rows(const QueryRun& run, const TilePlan& plan, RowCollector& rows) {
  const InterruptWatch interrupts(run.console);
  check_values(run.tasks.tasks, interrupts.token());
  Progress progress(run.console, "query", plan.tiles,
                    static_cast<double>(plan.entries) / static_cast<double>(plan.tiles), "entries");
  StreamControl control;
  control.stop = interrupts.token();
  control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done); };
  StreamingEngine engine(run.backend, run.budget);
  if (!engine.run(run.tasks.tasks, plan, rows, control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
}

/// Multiplies each head's weights by the norms of its value rows; heads that share them follow one
/// another.
void weigh_by_values(const QueryRun& run, std::vector<std::vector<float>>& values) {
  const HeadTask* previous = nullptr;
  std::vector<double> norms;
  MemoryReservation reservation;
  for (size_t i = 0; i < values.size(); ++i) {
    const HeadTask& task = run.tasks.tasks[i];
    const AttentionProblem& problem = *task.problem;
    const bool same = previous != nullptr && previous->problem == task.problem &&
                      previous->batch == task.batch &&
                      problem.kv_head(previous->head) == problem.kv_head(task.head);
    if (!same) {
      norms = {};
      reservation = {};
      reservation = run.budget.reserve(problem.num_keys() * static_cast<int64_t>(sizeof(double)),
                                       "the norms of the values");
      norms = value_norms(problem, task.batch, task.head, {0, problem.num_keys()});
    }
    previous = &task;
    for (size_t j = 0; j < norms.size(); ++j) {
      values[i][j] = static_cast<float>(values[i][j] * norms[j]);
    }
  }
}

/// What the chosen keys of each head count in its columns.
std::vector<ReverseTask> reverse_tasks(const QueryRun& run) {
  std::vector<ReverseTask> tasks;
  for (size_t i = 0; i < run.tasks.tasks.size(); ++i) {
    const HeadTask& head = run.tasks.tasks[i];
    const ChosenTokens& chosen = run.tasks.tokens_of(i);
    ReverseTask task{
        head.problem, run.tasks.call_of(i).mask.get(), head.batch, head.head, chosen.tokens, {}};
    for (size_t k = 0; k < chosen.tokens.size(); ++k) {
      double factor = static_cast<double>(chosen.counts[k]) / static_cast<double>(chosen.items);
      if (run.request.weighting == "value") {
        const int64_t key = chosen.tokens[k];
        factor *= value_norms(*head.problem, head.batch, head.head, {key, key + 1}).front();
      }
      task.factors.push_back(factor);
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

void say_cache_use(const QueryRun& run, const ReverseQuery& query, bool enabled) {
  if (!query.cache_problem().empty()) {
    run.console.warn("warning: row sums could not be kept: " + query.cache_problem());
  }
  if (!enabled || query.normed() == 0) return;
  run.console.say(fmt::format("row sums: {} from the cache, {} computed", query.cached(),
                              query.normed() - query.cached()));
}

}  // namespace

std::optional<QueryValues> compute_rows(const QueryRun& run) {
  const std::vector<HeadTask>& tasks = run.tasks.tasks;
  const int threads = run.request.run.threads;
  RowCollector rows(tasks, parse_domain(run.request.domain),
                    threads > 0 ? threads : run.backend.workers(), run.budget);
  const TilePlan plan =
      plan_tiles(tasks, rows.request(), run.backend, run.budget.available(), threads);
  if (run.request.dry_run) {
    print_plan(run, plan, expected_seconds(tasks, rows.request(), plan, run.backend, run.budget));
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
  if (run.request.weighting == "value") weigh_by_values(run, result.values);
  return result;
}

std::optional<QueryValues> compute_columns(const QueryRun& run, LseCache& cache) {
  const std::vector<ReverseTask> tasks = reverse_tasks(run);
  ReverseQuery query(tasks, {parse_domain(run.request.domain), run.request.run.threads},
                     run.backend, run.budget);
  const TilePlan plan = query.plan();
  if (run.request.dry_run) {
    print_plan(
        run, plan,
        expected_seconds(query.norm_tasks(), query.norm_request(), plan, run.backend, run.budget));
    return std::nullopt;
  }
  QueryValues result;
  {
    const InterruptWatch interrupts(run.console);
    check_values(run.tasks.tasks, interrupts.token());
    constexpr double kTicks = 1000;
    const auto ticks = static_cast<double>(query.steps()) * kTicks;
    Progress progress(run.console, "query", static_cast<int64_t>(ticks),
                      static_cast<double>(plan.entries) / ticks, "entries");
    result.values = query.run(cache, {interrupts.token(), [&](double steps) {
                                        progress.update(static_cast<int64_t>(steps * kTicks));
                                      }});
  }
  say_cache_use(run, query, cache.enabled());
  result.lse.assign(tasks.size(), std::numeric_limits<double>::quiet_NaN());
  result.reservation = query.take_reservation();
  return result;
}

}  // namespace attnscope
