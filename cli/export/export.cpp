#include <fmt/core.h>

#include <chrono>

#include "cli/common/capture_check.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/forecast.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/common/shard_option.h"
#include "cli/common/stream_run.h"
#include "cli/common/team_run.h"
#include "cli/common/unknown_state.h"
#include "cli/common/value_failure.h"
#include "cli/export/export_options.h"
#include "cli/export/export_pooled.h"
#include "cli/export/export_request.h"
#include "cli/export/export_result.h"
#include "cli/export/export_steps.h"
#include "cli/export/export_team.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/stream/tile_plan.h"
#include "io/export/write/hdf5_export.h"
#include "io/export/write/make_export.h"
#include "io/files/file_ending.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

ExportResult result_of(const ExportOptions& o, const ExportSink& sink, double seconds) {
  return {o.out,
          static_cast<int64_t>(sink.tasks().size()),
          sink.tiles_total(),
          sink.resume().tiles_kept,
          sink.bytes_written(),
          seconds};
}

/// Streams the maps; throws Error(interrupted) when it was stopped. Whatever stops it, what is
/// complete by then is committed.
void stream_export(const Console& console, const TilePlan& plan, const TileBackend& backend,
                   MemoryBudget& budget, ExportSink& sink, std::stop_token stop) {
  bool complete = false;
  try {
    const auto there = [&](int64_t task, IndexRange rows, IndexRange cols) {
      return sink.has_tile(task, rows, cols);
    };
    complete = run_tiles({console, "export", backend, budget, stop}, sink.tasks(), plan, sink,
                         sink.resume().resumed ? SkipTile(there) : SkipTile());
    if (!complete) sink.suspend();
  } catch (const std::exception& error) {
    commit_what_can_be(sink);
    if (sink.tiles_kept() > 0 && !is_of_values(error)) {
      console.warn(leftover_text(kept_tiles(sink, sink.tiles_kept())));
    }
    throw;
  }
  if (!complete) throw interrupted_error(leftover_text(kept_tiles(sink, sink.tiles_kept())));
}

/// A part that has no head: an output of its own without any, so that a job's tasks all end well.
int export_empty_part(ExportPlan plan, const ExportOptions& o, const Capture& capture,
                      const Console& console) {
  if (o.dry_run) {
    print_plan({.command = "export"}, o.json);
    return kExitOk;
  }
  plan.spec.find_hashes(capture, false, console.stop().get_token());
  const auto sink = make_export(std::move(plan), o.out, write_options_of(o, capture));
  if (sink->resume().complete) {
    say_complete(console, o.out);
  } else {
    sink->end();
    console.say(fmt::format("wrote {} (no heads)", o.out));
  }
  if (o.json) print_export_result(result_of(o, *sink, 0));
  return kExitOk;
}

int run_export(const ExportOptions& asked) {
  const Console console(asked.quiet);
  ExportOptions o = asked;
  check_export_name(o.out);
  if (const auto team = form_team(o.shard, o.alone, o.out, console)) {
    return export_together(o, *team, console);
  }
  const std::optional<PlanShare> share = chosen_share(o.shard, console);
  o.out = name_of_share(o.out, share);
  const Capture capture = open_capture(o.capture, o.run, console);
  const auto backend = make_run_backend(o.run, console);
  const MemoryRoom memory = memory_beside(capture, o.run);
  check_capture(capture, o.capture, *backend, memory, console);
  tell_unknown_state(capture.select(parse_selection(o.selection)), console);
  ExportPlan plan = make_export_spec(o, capture, *backend, share);
  const ExportSpec& spec = plan.spec;
  if (spec.product == ExportProduct::pooled) {
    Team alone;
    bool begun = false;
    return export_pooled(std::move(plan), {o, *backend, capture, console, alone, o.run, begun});
  }
  if (plan.tasks.empty()) return export_empty_part(std::move(plan), o, capture, console);
  MemoryBudget budget(memory);
  const ExportWriteOptions write_options = write_options_of(o, capture);
  const TilePlan tiles = plan_tiles(plan.tasks, plan.request(), *backend, budget.room(),
                                    o.run.threads, threads_at_disk(plan, write_options));
  const ExportSize size = estimate_export(plan);
  RunPlan forecast =
      forecast_run("export", plan.tasks, plan.request(), tiles, *backend, budget, o.dry_run);
  forecast.payload_bytes = size.payload_bytes;
  forecast.file_bytes = size.file_bytes;
  forecast.at_most = size.at_most;
  forecast.free_bytes = free_disk_bytes(o.out);
  forecast.seconds_note = " of computation";
  if (o.dry_run) {
    print_plan(forecast, o.json);
    return kExitOk;
  }
  check_export_target(o.out, write_options, spec.is_sharded());
  say_export_start(console, o, spec, forecast, *backend);

  const bool with_values = spec.product == ExportProduct::output;
  const CheckedRun run(console, plan.tasks, *backend, with_values);
  run.check_logits(plan.tasks, *backend, budget, plan.request().quantity);
  plan.spec.find_hashes(capture, with_values, run.stop());
  auto owned = make_export(std::move(plan), o.out, write_options);
  ExportSink& sink = *owned;
  if (sink.resume().complete) {
    say_complete(console, o.out);
    for (const std::string& note : sink.notes()) console.say(note);
    if (o.json) print_export_result(result_of(o, sink, 0));
    return kExitOk;
  }
  for (const std::string& warning : sink.warnings()) console.warn(warning);
  say_export_resume(console, sink);
  const auto start = std::chrono::steady_clock::now();
  try {
    stream_export(console, tiles, *backend, budget, sink, run.stop());
  } catch (const Error& error) {
    if (!is_of_values(error)) throw;
    owned.reset();
    give_up_partial(o.out, error);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  if (o.json) print_export_result(result_of(o, sink, spent.count()));
  console.say(written_text(o, sink.bytes_written(), spent.count()));
  for (const std::string& note : sink.notes()) console.say(note);
  return kExitOk;
}

}  // namespace

Command add_export_command(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  ExportOptions& o = *options;
  CommandParser command(app, "export", "stream attention maps to an HDF5 file");
  add_export_options(command, o);
  command.footer(
      "Examples:\n"
      "  attnscope export dump/ -o maps.h5 --layers 12 --heads 0-3\n"
      "  attnscope export dump/ -o text.h5 --cols 0:226 --dtype f32\n"
      "  attnscope export dump/ -o row.h5 --query 6,15,22\n"
      "  attnscope export dump/ -o out.h5 --product output --layers 12\n"
      "  attnscope export dump/ -o part-{shard}.h5 --shard 3/16   # then: attnscope merge\n"
      "  attnscope export --q q.npy --k k.npy --grid 13x30x45 --text 226@start -o maps.h5");
  return {command, [options] { return run_export(*options); }};
}

}  // namespace attnscope
