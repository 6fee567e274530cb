#include "cli/plot/plot_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/run/call_heads.h"
#include "cli/run/run_steps.h"
#include "core/heads/head_record_sink.h"

namespace attnscope {
namespace {

/// Bytes that a head's record takes until the plot is drawn.
constexpr int64_t kPlotRecordBytes = 6 << 10;

}  // namespace

std::string plot_rows_words(const PlotRequest& o) {
  if (o.kind() == PlotKind::recall && !o.exact) {
    return fmt::format("keys counted on up to {} rows of each head",
                       o.sample > 0 ? std::min(o.sample, kShareRows) : kShareRows);
  }
  return o.sample > 0 ? fmt::format("up to {} rows of each head", o.sample) : "";
}

std::optional<PlotHeads> plot_heads_of_capture(const PlotWork& work) {
  const StatsChoice choice = work.request.choice();
  const StatsJobs jobs = make_stats_jobs(choice, work.calls);
  const MemoryReservation held =
      reserve_results(work.run.budget(), std::ssize(jobs.jobs), kPlotRecordBytes);
  PlotHeads heads;
  HeadRecordSink sink(jobs.jobs, {{}, choice.thresholds, jobs.tokens},
                      [&](HeadRecord record) { heads.records.push_back(std::move(record)); });
  work.run.reduce(jobs.jobs, sink);
  if (work.run.is_plan_only()) return std::nullopt;
  sort_records(heads.records);
  heads.title = work.title;
  heads.how = plot_rows_words(work.request);
  const auto by_name =
      std::make_shared<const std::map<HeadName, CallHead>>(heads_by_name(work.calls));
  const auto seen = std::make_shared<SeenKeys>();
  heads.keys_seen = [by_name, seen](const HeadRecord& record) {
    return seen->of(by_name->at(record.name));
  };
  return heads;
}

}  // namespace attnscope
