#include "cli/export/export_pooled.h"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/interrupt.h"
#include "core/base/error.h"
#include "core/stream/value_check.h"
#include "io/export/write/pooled_export.h"
#include "io/results/finished_run.h"

namespace attnscope {
namespace {

struct PooledForecast {
  int64_t heads = 0, payload_bytes = 0, free_bytes = -1, memory_bytes = 0, budget_bytes = 0;
  double seconds = -1;
};

void print_forecast(const PooledRun& r, const PooledForecast& f, const ReductionPlan& plan) {
  if (r.json) {
    nlohmann::ordered_json json{
        {"format", "attnscope-plan/1"}, {"heads", f.heads}, {"payload_bytes", f.payload_bytes}};
    if (f.free_bytes >= 0) json["free_bytes"] = f.free_bytes;
    json["expected_seconds"] = f.seconds;
    json["entries"] = plan.entries;
    json["flops"] = plan.flops;
    json["memory_bytes"] = f.memory_bytes;
    json["budget_bytes"] = f.budget_bytes;
    json["workers"] = plan.workers;
    return print_json(json, false);
  }
  fmt::print("heads          {}\npayload        {}\narithmetic     {}FLOP\n", f.heads,
             format_bytes(f.payload_bytes), format_count(plan.flops));
  fmt::print("expected time  {} of computation\nmemory         {} of {}\nplan           {}\n",
             format_seconds(f.seconds), format_bytes(f.memory_bytes), format_bytes(f.budget_bytes),
             plan.describe());
}

/// Whether --resume finds the file complete. What an interrupted pooled export left is worth
/// nothing; throws Error(file) where something else would be lost.
bool finished_already(const PooledRun& r, const ExportSpec& spec) {
  std::error_code none;
  if (!r.write.resume || r.write.force) return false;
  const std::string journal = r.out + ".journal";
  if (std::filesystem::exists(journal, none)) {
    throw file_error(journal, "",
                     "is left from an export that is not pooled (--force gives it up)");
  }
  if (!std::filesystem::exists(r.out, none)) return false;
  expect_same_run(finished_run(r.out, "pooled"),
                  {{"capture_hash", spec.capture_hash},
                   {"options", nlohmann::ordered_json::parse(spec.options_json)}},
                  r.out);
  r.console.say(r.out + " is complete already");
  return true;
}

void print_written(const PooledRun& r, const PooledForecast& f, double seconds) {
  if (!r.json) return;
  print_json({{"format", "attnscope-export-result/1"},
              {"out", r.out},
              {"heads", f.heads},
              {"bytes_written", seconds > 0 ? f.payload_bytes : 0},
              {"seconds", seconds}},
             false);
}

}  // namespace

int export_pooled(ExportSpec spec, const PooledRun& r) {
  MemoryBudget budget(memory_limit(r.run));
  const std::vector<ReductionJob> wanted = PooledExport::jobs_of(spec);
  ReductionPlan plan = plan_reductions(wanted, r.backend, budget.limit(), r.run.threads);
  // Panels of all workers may be under way, out of order.
  const int64_t levels = PooledExport::memory_bytes(spec, plan.panel_rows * (2 * plan.workers + 1));
  const MemoryReservation held = budget.reserve(levels, "the coarser levels");
  plan = plan_reductions(wanted, r.backend, budget.available(), r.run.threads);
  ReductionStream stream(r.backend, budget);
  PooledForecast forecast{static_cast<int64_t>(wanted.size()),
                          PooledExport::payload_bytes(spec),
                          free_disk_bytes(r.out),
                          plan.bytes_total + levels,
                          budget.limit(),
                          -1};
  constexpr double kLongFlops = 2e12;
  if (r.dry_run || plan.flops > kLongFlops) {
    forecast.seconds = stream.expected_seconds(wanted, plan);
  }
  if (r.dry_run) {
    print_forecast(r, forecast, plan);
    return kExitOk;
  }
  check_export_target(r.out, r.write);
  r.console.say(fmt::format(
      "pooled maps of {} head{}: {} to {}{}; {}; {}", forecast.heads,
      forecast.heads == 1 ? "" : "s", format_bytes(forecast.payload_bytes), r.out,
      forecast.seconds < 0 ? "" : fmt::format(", about {}", format_seconds(forecast.seconds)),
      r.backend.description(), plan.describe()));

  const InterruptWatch interrupts(r.console);
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : wanted) tasks.push_back(job.task);
  check_values(tasks, interrupts.token());
  spec.capture_hash = r.capture.content_hash(spec.calls, false, interrupts.token());
  if (finished_already(r, spec)) {
    print_written(r, forecast, 0);
    return kExitOk;
  }
  PooledExport pooled(std::move(spec), r.out, r.write);
  const auto start = std::chrono::steady_clock::now();
  {
    Progress progress(r.console, "export", plan.panels,
                      plan.entries / static_cast<double>(plan.panels), "entries");
    StreamControl control;
    control.stop = interrupts.token();
    control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done); };
    if (!stream.run(pooled.jobs(), plan, pooled, control)) {
      throw Error(ErrorCode::interrupted, "interrupted: nothing was kept");
    }
  }
  pooled.end();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  print_written(r, forecast, spent.count());
  r.console.say(fmt::format("wrote {} ({} in {})", r.out, format_bytes(forecast.payload_bytes),
                            format_seconds(spent.count())));
  return kExitOk;
}

}  // namespace attnscope
