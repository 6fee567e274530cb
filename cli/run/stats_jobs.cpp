#include "cli/run/stats_jobs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/problem/signed_weights.h"

namespace attnscope {

OrderedJson choice_json(const StatsChoice& choice) {
  const ClassThresholds& t = choice.thresholds;
  return {choice.sample, choice.band, choice.exact, t.sink, t.text, t.temporal, t.spatial, t.local};
}

StatsJobs make_stats_jobs(const StatsChoice& o, std::vector<SelectedCall> calls) {
  StatsJobs s;
  s.calls = std::move(calls);
  s.rows.reserve(s.calls.size());
  s.share_rows.reserve(s.calls.size());
  for (const SelectedCall& selected : s.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    require_one_sign(problem, "stats");
    const int64_t rows = problem.num_queries();
    const bool sampled = o.sample > 0 && o.sample < rows;
    s.rows.push_back(sampled ? sampled_rows(rows, o.sample) : std::vector<int64_t>());
    const int64_t taken = sampled ? o.sample : rows;
    std::vector<int64_t> shares = sampled_rows(taken, o.exact ? taken : kShareRows);
    if (sampled) {
      for (int64_t& row : shares) row = s.rows.back()[static_cast<size_t>(row)];
    }
    s.share_rows.push_back(std::move(shares));
    ReductionRequest request = metrics_request(problem, s.share_rows.back(),
                                               o.band < 0 ? std::nullopt : std::optional(o.band));
    request_arrays(request, o.arrays);
    if (request.offsets && !request.places) {
      throw usage_error("--with offset_kernel: queries and keys of " + problem.name() +
                        " are not the same tokens of a known grid; give --grid TxHxW");
    }
    for (int64_t b : selected.batch) {
      for (int64_t h : selected.heads) {
        s.jobs.push_back(
            {{&problem, b, h, {0, rows}, s.rows.back(), {0, problem.num_keys()}}, request});
        s.tokens.push_back(selected.call->tokens_of(b));
      }
    }
  }
  return s;
}

namespace {

/// Leaves the jobs that `keep` says yes to, by place.
template <typename Keep>
void keep_jobs(StatsJobs& s, const Keep& keep) {
  StatsJobs left;
  for (size_t i = 0; i < s.jobs.size(); ++i) {
    if (!keep(i)) continue;
    left.jobs.push_back(s.jobs[i]);
    left.tokens.push_back(s.tokens[i]);
  }
  s.jobs = std::move(left.jobs);
  s.tokens = std::move(left.tokens);
}

}  // namespace

void keep_share(StatsJobs& s, const SelectionShare& share) {
  std::set<std::pair<const AttentionProblem*, int64_t>> own;
  for (const SelectedCall& call : share.of(s.calls)) {
    for (const int64_t head : call.heads) own.insert({call.call->problem.get(), head});
  }
  keep_jobs(s, [&](size_t i) {
    const HeadTask& task = s.jobs[i].task;
    return own.count({task.problem, task.head}) != 0;
  });
}

void drop_jobs(StatsJobs& s, std::span<const int64_t> places) {
  keep_jobs(s, [&](size_t i) {
    return !std::binary_search(places.begin(), places.end(), static_cast<int64_t>(i));
  });
}

ReductionPlan plan_stats(const StatsChoice& choice, const StatsJobs& s, const TileBackend& backend,
                         const MemoryBudget& budget, int threads) {
  return plan_reductions(s.jobs, backend, budget.room(), threads,
                         HeadRecordSink::head_bytes(choice.arrays, s.jobs));
}

bool measure_heads(const StreamJob& job, const StatsChoice& choice, const StatsJobs& s,
                   const ReductionPlan& plan, const HeadRecordSink::Take& take) {
  HeadRecordSink sink(s.jobs, {choice.arrays, choice.thresholds, s.tokens}, take);
  return run_reductions(job, s.jobs, plan, sink);
}

}  // namespace attnscope
