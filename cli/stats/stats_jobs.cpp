#include "cli/stats/stats_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

/// Rows on which keys are counted unless --exact asks for all of them.
constexpr int64_t kShareRows = 256;

/// A head's place among the records, whatever order they came in.
std::string record_key(const Json& record) {
  return fmt::format("{}/{}/{}/{}/{}/{}", record["step"].dump(), record["layer"].dump(),
                     record["branch"].dump(), record["kind"].dump(), record["batch"].dump(),
                     record["head"].dump());
}

}  // namespace

StatsJobs make_stats_jobs(const StatsOptions& o, const Capture& capture) {
  StatsJobs s;
  s.calls = capture.select(parse_selection(o.selection));
  s.rows.reserve(s.calls.size());
  s.share_rows.reserve(s.calls.size());
  for (const SelectedCall& selected : s.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    const int64_t rows = problem.num_queries();
    const bool sampled = o.sample > 0 && o.sample < rows;
    s.rows.push_back(sampled ? spread_rows(rows, o.sample) : std::vector<int64_t>());
    const int64_t taken = sampled ? o.sample : rows;
    std::vector<int64_t> shares = spread_rows(taken, o.exact ? taken : kShareRows);
    if (sampled) {
      for (int64_t& row : shares) row = s.rows.back()[static_cast<size_t>(row)];
    }
    s.share_rows.push_back(std::move(shares));
    ReductionRequest request = metrics_request(problem, s.share_rows.back(),
                                               o.band < 0 ? std::nullopt : std::optional(o.band));
    request.max_keys = o.wants("max_key_rows");
    request.diagonals = o.wants("diagonal_profile");
    request.offsets = o.wants("offset_kernel");
    if (request.offsets && !request.places) {
      throw usage_error("--with offset_kernel: queries and keys of " + problem.name() +
                        " are not the same tokens of a known grid; give --grid TxHxW");
    }
    for (int64_t b : selected.batch) {
      for (int64_t h : selected.heads) {
        s.jobs.push_back(
            {{&problem, b, h, {0, rows}, s.rows.back(), {0, problem.num_keys()}}, request});
        s.call_of_job.push_back(selected.call);
      }
    }
  }
  return s;
}

void drop_known(StatsJobs& s, const std::vector<Json>& kept) {
  std::set<std::string> known;
  for (const Json& record : kept) known.insert(record_key(record));
  StatsJobs left;
  for (size_t i = 0; i < s.jobs.size(); ++i) {
    const CallId& id = s.call_of_job[i]->id;
    const HeadTask& task = s.jobs[i].task;
    const Json key{{"step", id.step},
                   {"layer", id.layer},
                   {"branch", branch_of(id, task.batch)},
                   {"kind", kind_name(id.kind)},
                   {"batch", task.batch},
                   {"head", task.head}};
    if (known.count(record_key(key)) != 0) continue;
    left.jobs.push_back(s.jobs[i]);
    left.call_of_job.push_back(s.call_of_job[i]);
  }
  s.jobs = std::move(left.jobs);
  s.call_of_job = std::move(left.call_of_job);
}

void sort_records(std::vector<Json>& records, const std::string& by) {
  const auto place = [](const Json& r) {
    return std::make_tuple(r["step"].get<int64_t>(), r["layer"].get<int64_t>(),
                           r["batch"].get<int64_t>(), r["kind"].get<std::string>(),
                           r["head"].get<int64_t>());
  };
  std::sort(records.begin(), records.end(),
            [&](const Json& a, const Json& b) { return place(a) < place(b); });
  if (by.empty()) return;
  // Undefined values last.
  const auto value = [&](const Json& r) {
    return r[by].is_number() ? r[by].get<double>() : -std::numeric_limits<double>::infinity();
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const Json& a, const Json& b) { return value(a) > value(b); });
}

}  // namespace attnscope
