#include "cli/export/export_pooled.h"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/interrupt.h"
#include "cli/common/run_plan.h"
#include "cli/common/stream_run.h"
#include "core/base/error.h"
#include "core/stream/logit_check.h"
#include "core/stream/value_check.h"
#include "io/export/write/make_export.h"
#include "io/export/write/pooled_export.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

/// Whether --resume finds the file complete; throws Error(file) where it is another one.
bool finished_already(const PooledRun& r, const ExportSpec& spec) {
  std::error_code none;
  if (!r.write.resume || r.write.force || !std::filesystem::exists(r.out, none)) return false;
  expect_same_run(output_provenance(r.out, "pooled"),
                  {{"capture_hash", spec.capture_hash},
                   {"options", nlohmann::ordered_json::parse(spec.options_json)}},
                  r.out);
  r.console.say(r.out + " is complete already");
  return true;
}

void print_written(const PooledRun& r, const RunPlan& f, double seconds) {
  if (!r.json) return;
  print_json({{"format", "attnscope-export-result/1"},
              {"out", r.out},
              {"heads", f.heads},
              {"bytes_written", seconds > 0 ? *f.payload_bytes : 0},
              {"seconds", seconds}},
             false);
}

}  // namespace

int export_pooled(ExportPlan plan, const PooledRun& r) {
  MemoryBudget budget(memory_limit(r.run));
  const std::vector<ReductionJob> wanted = PooledExport::jobs_of(plan);
  ReductionPlan reductions = plan_reductions(wanted, r.backend, budget.limit(), r.run.threads);
  // Panels of all workers may be under way, out of order.
  const int64_t levels =
      PooledExport::memory_bytes(plan, reductions.panel_rows * (2 * reductions.workers + 1));
  const MemoryReservation held = budget.reserve(levels, "the coarser levels");
  reductions = plan_reductions(wanted, r.backend, budget.available(), r.run.threads);
  ReductionStream stream(r.backend, budget);
  RunPlan forecast = plan_of("export", static_cast<int64_t>(wanted.size()), reductions, budget);
  forecast.payload_bytes = PooledExport::payload_bytes(plan);
  forecast.free_bytes = free_disk_bytes(r.out);
  forecast.seconds_note = " of computation";
  if (wants_estimate(r.dry_run, reductions.flops)) {
    forecast.seconds = stream.expected_seconds(wanted, reductions);
  }
  if (r.dry_run) {
    print_plan(forecast, r.json);
    return kExitOk;
  }
  check_export_target(r.out, r.write);
  r.console.say(fmt::format(
      "pooled maps of {} head{}: {} to {}{}; {}; {}", forecast.heads,
      forecast.heads == 1 ? "" : "s", format_bytes(*forecast.payload_bytes), r.out,
      forecast.seconds < 0 ? "" : fmt::format(", about {}", format_seconds(forecast.seconds)),
      r.backend.description(), reductions.describe()));

  const InterruptWatch interrupts(r.console);
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : wanted) tasks.push_back(job.task);
  check_values(tasks, interrupts.token());
  check_logits(tasks, r.backend, budget, interrupts.token());
  plan.spec.capture_hash = r.capture.content_hash(plan.spec.selection(), false, interrupts.token());
  if (finished_already(r, plan.spec)) {
    print_written(r, forecast, 0);
    return kExitOk;
  }
  PooledExport pooled(std::move(plan), r.out, r.write);
  const auto start = std::chrono::steady_clock::now();
  if (!run_reductions({r.console, "export", r.backend, budget, interrupts.token()}, pooled.jobs(),
                      reductions, pooled)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was kept");
  }
  pooled.end();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  print_written(r, forecast, spent.count());
  r.console.say(fmt::format("wrote {} ({} in {})", r.out, format_bytes(*forecast.payload_bytes),
                            format_seconds(spent.count())));
  return kExitOk;
}

}  // namespace attnscope
