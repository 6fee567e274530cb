#include "python/native/engine.h"

#include <utility>
#include <vector>

#include "cli/common/console.h"
#include "cli/run/run_steps.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/value_check.h"

namespace attnscope {

Engine::Engine(RunOptions options)
    : options_(std::move(options)), backend_(make_run_backend(options_, Console(true))) {
  memory_limit(options_);
}

EngineRun::EngineRun(const Engine& engine, RunWatch& watch)
    : engine_(engine), watch_(watch), budget_(engine.memory()) {}

StreamControl EngineRun::control() {
  StreamControl control;
  control.stop = watch_.stop();
  control.progress = [this](const StreamProgress& p) {
    watch_.progress(static_cast<double>(p.tiles_done) / static_cast<double>(p.tiles_total));
  };
  return control;
}

std::vector<TaskMagnitudes> EngineRun::check_values(std::span<const HeadTask> tasks,
                                                    bool with_values) {
  return attnscope::check_values(
      tasks, watch_.stop(),
      {.with_values = with_values, .threads = backend().workers(), .backend = &backend()});
}

void EngineRun::run(std::span<const HeadTask> tasks, TileSink& sink) {
  const TilePlan plan =
      plan_tiles(tasks, sink.request(), backend(), budget_.room(), engine_.options().threads);
  if (!StreamingEngine(backend(), budget_).run(tasks, plan, sink, control())) throw stopped_error();
}

void EngineRun::reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) {
  reduce(jobs, sink, 0);
}

void EngineRun::reduce(std::span<const ReductionJob> jobs, ReductionSink& sink,
                       int64_t sink_head_bytes) {
  const ReductionPlan plan =
      plan_reductions(jobs, backend(), budget_.room(), engine_.options().threads, sink_head_bytes);
  if (!ReductionStream(backend(), budget_).run(jobs, plan, sink, control())) throw stopped_error();
}

Error stopped_error() { return interrupted_error(kNothingKept); }

}  // namespace attnscope
