#include "cli/export/export_pooled.h"

#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/common/command.h"
#include "cli/export/export_request.h"
#include "cli/export/export_result.h"
#include "cli/export/export_steps.h"
#include "cli/run/forecast.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/stream_run.h"
#include "cli/run/team_steps.h"
#include "core/base/budget_error.h"
#include "io/export/write/make_export.h"
#include "io/export/write/pooled_export.h"
#include "io/files/json_types.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

OrderedJson identity_of(const ExportSpec& spec) {
  return run_identity(spec.capture_hash, OrderedJson::parse(spec.options_json),
                      spec.share ? &spec.share->part : nullptr);
}

/// True on all processes where the first one finds the output complete.
bool is_there(const ExportSpec& spec, const PooledRun& r) {
  const ExportOptions& o = r.options;
  const bool complete = r.team.is_first() && o.resume && !o.force &&
                        is_complete_already(r.console, o.out, "pooled", identity_of(spec));
  return !r.team.exchange(complete ? "complete" : "").front().empty();
}

/// Throws where what --resume finds is of another run.
void check_pooled_resume(ExportPlan& plan, const PooledRun& r, const ExportWriteOptions& write) {
  const InterruptWatch interrupts(r.console);
  find_hashes(plan.spec, r.team, r.capture, false, interrupts.token());
  if (!is_there(plan.spec, r) && r.team.is_first()) {
    check_export_resume(plan, r.options.out, write);
  }
}

/// A part that has no head: a file of its own without any.
int export_empty_pooled(ExportPlan plan, const PooledRun& r) {
  const ExportOptions& o = r.options;
  const ExportWriteOptions write = write_options_of(o, r.capture);
  if (r.is_only_planned({[&] { check_export_target(plan, o.out, write); },
                         [&] { check_pooled_resume(plan, r, write); },
                         [] { return RunPlan{.command = "export"}; }})) {
    return kExitOk;
  }
  find_hashes(plan.spec, r.team, r.capture, false, r.console.stop().get_token());
  const std::string hash = plan.spec.capture_hash;
  if (!is_there(plan.spec, r)) {
    make_pooled_export(std::move(plan), o.out, write)->end();
    r.console.say(fmt::format("wrote {} (no heads)", o.out));
  }
  if (o.json) print_export_result({.out = o.out, .capture_hash = hash});
  return kExitOk;
}

/// The first process makes the file; the others join it.
std::unique_ptr<PooledExport> open_pooled(ExportPlan plan, const PooledRun& r,
                                          const ExportWriteOptions& write) {
  const ExportOptions& o = r.options;
  std::unique_ptr<PooledExport> pooled;
  std::string invitation;
  if (r.team.is_first()) {
    pooled = make_pooled_export(std::move(plan), o.out, write);
    for (const std::string& warning : pooled->warnings()) r.console.warn(warning);
    r.begun = true;
    if (!r.team.is_alone()) invitation = pooled->invite();
  }
  const std::string first = r.team.exchange(invitation).front();
  if (r.team.is_first()) return pooled;
  return join_pooled_export(std::move(plan), o.out, write, first, r.team.rank());
}

/// The memory of a run: its reductions, and the coarser levels of the maps.
struct PooledMemory {
  ReductionPlan reductions;
  int64_t levels = 0;  ///< bytes
  int64_t total() const { return reductions.bytes_total + levels; }
};

/// With the most workers that leave room for the levels. Throws BudgetError.
PooledMemory plan_pooled_memory(const ExportPlan& plan, std::span<const ReductionJob> jobs,
                                const TileBackend& backend, const MemoryBudget& budget,
                                int threads) {
  const auto with = [&](const MemoryRoom& room, int workers) {
    PooledMemory memory{plan_reductions(jobs, backend, room, workers)};
    const ReductionPlan& reductions = memory.reductions;
    // Panels of all workers may be under way, out of order.
    memory.levels = pooled_memory_bytes(plan, reductions.panel_rows * (2 * reductions.workers + 1));
    return memory;
  };
  const MemoryRoom room = budget.room();
  int64_t smallest = 0;  // of the reductions of one worker
  for (int workers = threads > 0 ? threads : backend.workers(); workers > 0; --workers) {
    try {
      const PooledMemory memory = with(room, workers);
      const PooledMemory beside = with(budget.room(memory.levels), workers);
      if (beside.total() <= room.bytes) return beside;
    } catch (const BudgetError& error) {
      smallest = error.smallest();
    }
  }
  const PooledMemory least = with(smallest, 1);
  if (least.total() <= room.bytes) return least;
  throw BudgetError(room, least.total());
}

/// Joins the pieces of all processes into the file.
void finish(PooledExport& pooled, Team& team) {
  std::vector<int64_t> pieces(static_cast<size_t>(team.size()));
  pieces[static_cast<size_t>(team.rank())] = pooled.hand_in();
  team.add_up(pieces);
  if (team.is_first()) {
    if (!team.is_alone()) pooled.gather({.pieces = std::move(pieces)});
    pooled.end();
  }
  // Each keeps its file until the first one has put in all.
  team.exchange("");
}

}  // namespace

int export_pooled(ExportPlan plan, const PooledRun& r) {
  const ExportOptions& o = r.options;
  Team& team = r.team;
  if (plan.tasks.empty()) return export_empty_pooled(std::move(plan), r);
  MemoryBudget& budget = r.budget;
  const std::vector<ReductionJob> wanted = pooled_jobs(plan);
  const PooledMemory memory = plan_pooled_memory(plan, wanted, r.backend, budget, o.run.threads);
  const ReductionPlan& reductions = memory.reductions;
  const MemoryReservation held = budget.reserve(memory.levels, "the coarser levels");
  RunPlan forecast =
      forecast_run("export", wanted, reductions, r.backend, budget, o.dry_run && team.is_first());
  forecast.payload_bytes = pooled_payload_bytes(plan);
  forecast.free_bytes = free_disk_bytes(o.out);
  forecast.seconds_note = " of computation";
  if (!team.is_alone()) share_forecast(forecast, team, std::ssize(wanted));
  const ExportWriteOptions write = write_options_of(o, r.capture);
  if (r.is_only_planned({[&] { check_export_target(plan, o.out, write); },
                         [&] { check_pooled_resume(plan, r, write); }, [&] { return forecast; }})) {
    return kExitOk;
  }
  if (team.is_first()) {
    r.console.say(fmt::format("pooled maps of {}{}: {} to {}{}; {}; {}", heads_text(forecast.heads),
                              processes_text(forecast), format_bytes(*forecast.payload_bytes),
                              o.out, about_text(forecast), r.backend.description(),
                              reductions.describe()));
  }
  const std::span<const ReductionJob> looked_at = own_items(team, wanted);
  const CheckedRun& run = r.check_inputs(looked_at);
  if (!looked_at.empty()) run.check_logits(looked_at, r.backend, budget);
  find_hashes(plan.spec, team, r.capture, false, run.stop());
  const std::string hash = plan.spec.capture_hash;
  if (is_there(plan.spec, r)) {
    if (o.json && team.is_first()) {
      print_export_result({.out = o.out, .heads = forecast.heads, .capture_hash = hash});
    }
    return kExitOk;
  }
  const auto pooled = open_pooled(std::move(plan), r, write);
  const auto start = std::chrono::steady_clock::now();
  if (!run_reductions(
          {r.console, "export", r.backend, budget, run.stop(), team.is_alone() ? nullptr : &team},
          pooled->jobs(), reductions, *pooled)) {
    throw interrupted_error(kNothingKept);
  }
  finish(*pooled, team);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  if (!team.is_first()) return kExitOk;
  if (o.json) {
    print_export_result({.out = o.out,
                         .heads = forecast.heads,
                         .bytes_written = *forecast.payload_bytes,
                         .seconds = spent.count(),
                         .capture_hash = hash});
  }
  r.console.say(fmt::format("wrote {} ({} in {})", o.out, format_bytes(*forecast.payload_bytes),
                            format_seconds(spent.count())));
  for (const std::string& note : pooled->notes()) r.console.say(note);
  return kExitOk;
}

}  // namespace attnscope
