#include "cli/run/stream_run.h"

#include <atomic>

#include "cli/run/forecast.h"
#include "cli/run/run_steps.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/value_check.h"

namespace attnscope {

bool run_tiles(const StreamJob& job, std::span<const HeadTask> tasks, const TilePlan& plan,
               TileSink& sink, const SkipTile& skip) {
  Progress progress(job.console, job.title, plan.tiles,
                    static_cast<double>(plan.entries) / static_cast<double>(plan.tiles), "entries");
  std::atomic<int64_t> skipped{0};
  StreamControl control;
  control.stop = job.stop;
  control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done, skipped); };
  if (skip) {
    control.skip = [&](int64_t task, IndexRange rows, IndexRange cols) {
      const bool there = skip(task, rows, cols);
      if (there) ++skipped;
      return there;
    };
  }
  return StreamingEngine(job.backend, job.budget).run(tasks, plan, sink, control);
}

bool run_reductions(const StreamJob& job, std::span<const ReductionJob> jobs,
                    const ReductionPlan& plan, ReductionSink& sink) {
  // Of what others do as well, this process knows which jobs were begun.
  const int64_t steps = job.shared != nullptr ? std::ssize(jobs) : plan.panels;
  Progress progress(job.console, job.title, steps, plan.entries / static_cast<double>(steps),
                    "entries");
  std::atomic<int64_t> begun{0};
  StreamControl control;
  control.stop = job.stop;
  control.progress = [&](const StreamProgress& p) {
    progress.update(job.shared != nullptr ? begun.load() : p.tiles_done);
  };
  if (job.shared != nullptr) {
    job.shared->begin_units(steps);
    control.next_task = [&] {
      const std::optional<int64_t> next = job.shared->next_unit();
      begun = next.value_or(steps);
      return next;
    };
  }
  return ReductionStream(job.backend, job.budget).run(jobs, plan, sink, control);
}

StreamRun::StreamRun(const RunOptions& options, const MemoryRoom& memory, const Console& console,
                     std::string title)
    : console_(console),
      title_(std::move(title)),
      threads_(options.threads),
      backend_(make_run_backend(options, console)),
      budget_(memory) {}

int StreamRun::workers() const { return threads_ > 0 ? threads_ : backend_->workers(); }

void StreamRun::run(std::span<const HeadTask> tasks, TileSink& sink) {
  const TileRequest request = sink.request();
  const TilePlan plan = plan_tiles(tasks, request, *backend_, budget_.room(), threads_);
  if (plan_only_) {
    forecast_ = forecast_run(title_, tasks, request, plan, *backend_, budget_, true);
    return;
  }
  std::optional<CheckedRun> own;
  if (above_) {
    check_values(tasks, *above_, {.threads = backend_->workers(), .backend = backend_.get()});
  } else {
    own.emplace(console_, tasks, *backend_);
  }
  const Console shown = own ? console_ : console_.silenced();
  const std::stop_token stop = own ? own->stop() : *above_;
  if (!run_tiles({shown, title_, *backend_, budget_, stop}, tasks, plan, sink)) {
    throw interrupted_error(kNothingWritten);
  }
}

void StreamRun::reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) {
  const ReductionPlan plan = plan_reductions(jobs, *backend_, budget_.room(), threads_);
  if (plan_only_) {
    forecast_ = forecast_run(title_, jobs, plan, *backend_, budget_, true);
    return;
  }
  std::optional<CheckedRun> own;
  if (above_) {
    std::vector<HeadTask> tasks;
    for (const ReductionJob& job : jobs) tasks.push_back(job.task);
    check_values(tasks, *above_, {.threads = backend_->workers(), .backend = backend_.get()});
  } else {
    own.emplace(console_, jobs, *backend_);
  }
  const Console shown = own ? console_ : console_.silenced();
  const std::stop_token stop = own ? own->stop() : *above_;
  if (!run_reductions({shown, title_, *backend_, budget_, stop}, jobs, plan, sink)) {
    throw interrupted_error(kNothingWritten);
  }
}

}  // namespace attnscope
