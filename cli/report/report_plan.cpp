#include "cli/report/report_plan.h"

#include <algorithm>
#include <utility>

#include "cli/report/report_heads.h"
#include "cli/report/report_looks.h"
#include "cli/report/report_sparsity.h"
#include "cli/report/report_words.h"
#include "cli/run/call_heads.h"
#include "cli/run/forecast.h"
#include "core/patterns/mask_measurement.h"
#include "core/products/differences/map_profiles.h"
#include "core/stream/panel.h"

namespace attnscope {
namespace {

double heads_of_call(const SelectedCall& selected) {
  return static_cast<double>(selected.batch.size() * selected.heads.size());
}

double rows_of_call(const SelectedCall& selected, int64_t sample) {
  const int64_t queries = selected.call->problem->num_queries();
  return static_cast<double>(sample > 0 ? std::min(sample, queries) : queries);
}

double map_entries(const AttentionProblem& problem) {
  return static_cast<double>(problem.num_queries()) * static_cast<double>(problem.num_keys());
}

/// The call whose heads cost most; null where there is none that a report measures.
const SelectedCall* dearest_call(const std::vector<SelectedCall>& calls) {
  const SelectedCall* dearest = nullptr;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    if (is_signed(problem.score())) continue;
    if (dearest == nullptr || map_entries(problem) > map_entries(*dearest->call->problem)) {
      dearest = &selected;
    }
  }
  return dearest;
}

/// Masks of as many heads of a call as the section on sparsity measures.
void add_masks(const std::vector<SelectedCall>& calls, int64_t sample, PassCost& cost) {
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    if (!is_normalised(problem.score())) continue;
    const double rows = rows_of_call(selected, MaskMeasurement::kSampledRows);
    double heads = heads_of_call(selected);
    if (sample > 0) {
      const double share = kMaskEntries / static_cast<double>(calls.size());
      const double fit = share / (rows * static_cast<double>(problem.num_keys()));
      heads = std::min(heads, std::max(2.0, fit));
    }
    cost.add(problem, heads, rows);
  }
}

/// Words are of heads that have text among the keys of a video.
void add_words(const std::vector<SelectedCall>& calls, int64_t sample, PassCost& cost) {
  double heads = 0;
  const AttentionProblem* dearest = nullptr;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    if (!is_normalised(problem.score()) || !problem.query_tokens().has_grid() ||
        problem.key_tokens().text_range().empty() || selected.call->tokens.empty()) {
      continue;
    }
    heads += heads_of_call(selected);
    if (dearest == nullptr || map_entries(problem) > map_entries(*dearest)) dearest = &problem;
  }
  if (dearest == nullptr) return;
  PassCost words;
  words.add(*dearest, std::min(heads, double{kMostWordHeads}),
            static_cast<double>(dearest->query_tokens().video_range().size()));
  const double share = sample > 0 ? std::min(1.0, kWordsFlops / words.flops) : 1;
  cost.add({share * words.entries, share * words.flops});
}

/// A figure needs the norms of its rows over all keys, and its own entries again.
void add_figures(const SelectedCall& selected, double heads, int64_t bytes, PassCost& cost) {
  const AttentionProblem& problem = *selected.call->problem;
  const auto queries = static_cast<double>(problem.num_queries());
  const double each = 4.0 / 3 *
                      static_cast<double>(problem.num_queries() * problem.q().row_bytes() +
                                          problem.num_keys() * problem.k().row_bytes());
  const double stride = std::max(1.0, each / static_cast<double>(std::max<int64_t>(bytes, 1)));
  const double fit = static_cast<double>(bytes) / each;
  const double count = std::clamp(fit, 1.0, std::min(heads, static_cast<double>(kMostFigures)));
  cost.add(problem, count, queries / stride * (1 + 1 / stride));
}

/// Seconds that FLOP take which reduce nothing, by the dearest head.
double seconds_of_passes(StreamRun& run, const RunOptions& options,
                         const std::vector<ReductionJob>& jobs, double flops) {
  HeadTask task = std::max_element(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
                    return full_flops(a.task) < full_flops(b.task);
                  })->task;
  const TileRequest request;
  const TilePlan plan =
      plan_tiles({&task, 1}, request, run.backend(), run.budget().room(), options.threads);
  if (plan.flops <= 0) return 0;
  return std::max(0.0, flops) / plan.flops *
         expected_seconds({&task, 1}, request, plan, run.backend(), run.budget());
}

}  // namespace

void PassCost::add(const AttentionProblem& problem, double heads, double rows) {
  const double more = heads * rows * static_cast<double>(problem.num_keys());
  entries += more;
  flops += 2.0 * static_cast<double>(problem.head_dim()) * more;
}

void PassCost::add(const PassCost& other) {
  entries += other.entries;
  flops += other.flops;
}

PassCost cost_of_heads(const std::vector<SelectedCall>& calls, int64_t sample) {
  PassCost cost;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    if (is_signed(problem.score())) continue;
    cost.add(problem, heads_of_call(selected), 2 * rows_of_call(selected, sample));
    if (!problem.rows_add_up() || selected.heads.size() < 2) continue;
    cost.add(problem, heads_of_call(selected),
             static_cast<double>(std::ssize(profile_rows(problem.num_queries()))));
  }
  if (const SelectedCall* const dearest = dearest_call(calls)) {
    cost.add(*dearest->call->problem, static_cast<double>(std::min(head_count(calls), kMostLooks)),
             rows_of_call(*dearest, sample));
  }
  return cost;
}

PassCost cost_of_sections(const std::vector<SelectedCall>& calls, int64_t sample,
                          int64_t figure_bytes) {
  PassCost cost;
  add_masks(calls, sample, cost);
  add_words(calls, sample, cost);
  if (const SelectedCall* const dearest = dearest_call(calls)) {
    add_figures(*dearest, static_cast<double>(std::min(head_count(calls), kMostLooks)),
                figure_bytes, cost);
  }
  return cost;
}

RunPlan plan_of_passes(StreamRun& run, const RunOptions& options,
                       const std::vector<SelectedCall>& calls, int64_t sample,
                       const PassCost& cost) {
  StatsChoice numbers;
  numbers.sample = sample;
  numbers.arrays = measured_arrays();
  const MeasuredMemory held = reserve_heads(run.budget(), calls, sample);
  std::vector<StatsJobs> all;
  std::vector<ReductionJob> jobs;
  for (const SelectedCall& selected : calls) {
    if (is_signed(selected.call->problem->score())) continue;
    all.push_back(make_stats_jobs(numbers, {selected}));
    jobs.insert(jobs.end(), all.back().jobs.begin(), all.back().jobs.end());
  }
  RunPlan plan = plan_of("report", 0, ReductionPlan(), run.budget());
  plan.seconds = 0;
  if (!jobs.empty()) {
    plan = forecast_run("report", jobs,
                        plan_reductions(jobs, run.backend(), run.budget().room(), options.threads),
                        run.backend(), run.budget(), true);
    plan.seconds += seconds_of_passes(run, options, jobs, cost.flops - plan.flops);
  }
  plan.entries = static_cast<int64_t>(cost.entries);
  plan.flops = cost.flops;
  return plan;
}

void set_page_bytes(RunPlan& plan, int64_t bytes, bool at_most) {
  plan.payload_bytes = plan.file_bytes = bytes;
  plan.payload_word = "page";
  plan.at_most = at_most;
}

}  // namespace attnscope
