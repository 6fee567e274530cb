#include "cli/export/export_pooled.h"

#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/forecast.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/common/stream_run.h"
#include "cli/export/export_request.h"
#include "cli/export/export_result.h"
#include "io/export/write/make_export.h"
#include "io/export/write/pooled_export.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

/// What a file is made of, and how.
nlohmann::ordered_json identity_of(const ExportSpec& spec) {
  nlohmann::ordered_json identity{{"capture_hash", spec.capture_hash},
                                  {"options", nlohmann::ordered_json::parse(spec.options_json)}};
  if (spec.share) identity.update(part_identity(spec.share->part));
  return identity;
}

/// A part that has no head: a file of its own without any.
int export_empty_pooled(ExportPlan plan, const PooledRun& r) {
  const ExportOptions& o = r.options;
  if (o.dry_run) {
    print_plan({.command = "export"}, o.json);
    return kExitOk;
  }
  plan.spec.find_hashes(r.capture, false, r.console.stop().get_token());
  if (o.resume && !o.force &&
      is_complete_already(r.console, o.out, "pooled", identity_of(plan.spec))) {
    return kExitOk;
  }
  make_pooled_export(std::move(plan), o.out, write_options_of(o, r.capture))->end();
  r.console.say(fmt::format("wrote {} (no heads)", o.out));
  return kExitOk;
}

}  // namespace

int export_pooled(ExportPlan plan, const PooledRun& r) {
  const ExportOptions& o = r.options;
  if (plan.tasks.empty()) return export_empty_pooled(std::move(plan), r);
  MemoryBudget budget(memory_beside(r.capture, o.run));
  const std::vector<ReductionJob> wanted = pooled_jobs(plan);
  ReductionPlan reductions = plan_reductions(wanted, r.backend, budget.limit(), o.run.threads);
  // Panels of all workers may be under way, out of order.
  const int64_t levels =
      pooled_memory_bytes(plan, reductions.panel_rows * (2 * reductions.workers + 1));
  const MemoryReservation held = budget.reserve(levels, "the coarser levels");
  reductions = plan_reductions(wanted, r.backend, budget.available(), o.run.threads);
  RunPlan forecast = forecast_run("export", wanted, reductions, r.backend, budget, o.dry_run);
  forecast.payload_bytes = pooled_payload_bytes(plan);
  forecast.free_bytes = free_disk_bytes(o.out);
  forecast.seconds_note = " of computation";
  if (o.dry_run) {
    print_plan(forecast, o.json);
    return kExitOk;
  }
  const ExportWriteOptions write = write_options_of(o, r.capture);
  check_export_target(o.out, write);
  r.console.say(fmt::format("pooled maps of {}: {} to {}{}; {}; {}", heads_text(forecast.heads),
                            format_bytes(*forecast.payload_bytes), o.out, about_text(forecast),
                            r.backend.description(), reductions.describe()));

  const CheckedRun run(r.console, wanted, r.backend);
  run.check_logits(wanted, r.backend, budget);
  plan.spec.find_hashes(r.capture, false, run.stop());
  if (o.resume && !o.force &&
      is_complete_already(r.console, o.out, "pooled", identity_of(plan.spec))) {
    if (o.json) print_export_result({.out = o.out, .heads = forecast.heads});
    return kExitOk;
  }
  const auto pooled = make_pooled_export(std::move(plan), o.out, write);
  const auto start = std::chrono::steady_clock::now();
  if (!run_reductions({r.console, "export", r.backend, budget, run.stop()}, pooled->jobs(),
                      reductions, *pooled)) {
    throw interrupted_error(kNothingKept);
  }
  pooled->end();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  if (o.json) {
    print_export_result({.out = o.out,
                         .heads = forecast.heads,
                         .bytes_written = *forecast.payload_bytes,
                         .seconds = spent.count()});
  }
  r.console.say(fmt::format("wrote {} ({} in {})", o.out, format_bytes(*forecast.payload_bytes),
                            format_seconds(spent.count())));
  for (const std::string& note : pooled->notes()) r.console.say(note);
  return kExitOk;
}

}  // namespace attnscope
