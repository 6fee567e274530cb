#include "cli/common/stream_run.h"

#include "cli/common/forecast.h"
#include "cli/common/interrupt.h"
#include "core/base/error.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/value_check.h"

namespace attnscope {

StreamRun::StreamRun(const RunOptions& options, const Console& console, std::string title)
    : console_(console),
      title_(std::move(title)),
      threads_(options.threads),
      backend_(make_run_backend(options, console)),
      budget_(memory_limit(options)) {}

int StreamRun::workers() const { return threads_ > 0 ? threads_ : backend_->workers(); }

void StreamRun::run(std::span<const HeadTask> tasks, TileSink& sink) {
  const TileRequest request = sink.request();
  const TilePlan plan = plan_tiles(tasks, request, *backend_, budget_.available(), threads_);
  if (plan_only_) {
    forecast_ = {static_cast<int64_t>(tasks.size()),
                 plan.entries,
                 plan.flops,
                 expected_seconds(tasks, request, plan, *backend_, budget_),
                 plan.bytes_total + budget_.used(),
                 budget_.limit(),
                 plan.describe()};
    return;
  }
  const InterruptWatch interrupts(console_);
  check_values(tasks, interrupts.token());
  Progress progress(console_, title_, plan.tiles,
                    static_cast<double>(plan.entries) / static_cast<double>(plan.tiles), "entries");
  StreamControl control;
  control.stop = interrupts.token();
  control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done); };
  StreamingEngine engine(*backend_, budget_);
  if (!engine.run(tasks, plan, sink, control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
}

void StreamRun::reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) {
  const ReductionPlan plan = plan_reductions(jobs, *backend_, budget_.available(), threads_);
  ReductionStream stream(*backend_, budget_);
  if (plan_only_) {
    forecast_ = {static_cast<int64_t>(jobs.size()),
                 static_cast<int64_t>(plan.entries),
                 plan.flops,
                 stream.expected_seconds(jobs, plan),
                 plan.bytes_total + budget_.used(),
                 budget_.limit(),
                 plan.describe()};
    return;
  }
  const InterruptWatch interrupts(console_);
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : jobs) tasks.push_back(job.task);
  check_values(tasks, interrupts.token());
  Progress progress(console_, title_, plan.panels, plan.entries / static_cast<double>(plan.panels),
                    "entries");
  StreamControl control;
  control.stop = interrupts.token();
  control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done); };
  if (!stream.run(jobs, plan, sink, control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
}

}  // namespace attnscope
