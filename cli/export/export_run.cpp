#include "cli/export/export_run.h"

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/pixel_query.h"
#include "cli/export/export_pooled.h"
#include "cli/export/export_request.h"
#include "cli/export/export_result.h"
#include "cli/export/export_size.h"
#include "cli/export/export_steps.h"
#include "cli/run/forecast.h"
#include "cli/run/head_run.h"
#include "cli/run/run_steps.h"
#include "cli/run/stream_run.h"
#include "cli/run/team_steps.h"
#include "cli/run/value_failure.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/stream/row_units.h"
#include "core/stream/streaming_engine.h"
#include "io/export/write/hdf5_export.h"
#include "io/export/write/make_export.h"
#include "io/export/write/shared_export.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

/// So many units a process, where there are the rows, so that none waits long for the last one.
constexpr int64_t kUnitsOfProcess = 8;

/// Of an export in shards a unit is a call, which one process does whole, for its shard's bytes do
/// not depend on who was faster.
int64_t least_units(const ExportSpec& spec, const Team& team) {
  return spec.is_sharded() ? 1 : kUnitsOfProcess * team.size();
}

/// Gives out the tasks of whole runs, one run after the other.
class TasksOfRuns {
 public:
  TasksOfRuns(Team& team, SharedExport& sink, const std::vector<IndexRange>& runs)
      : team_(team), sink_(sink), runs_(runs) {}

  std::optional<int64_t> next() {
    if (now_.empty()) {
      const std::optional<int64_t> run = team_.next_unit();
      if (!run) return std::nullopt;
      now_ = runs_[static_cast<size_t>(*run)];
      sink_.take_run(now_);
    }
    return now_.begin++;
  }

 private:
  Team& team_;
  SharedExport& sink_;
  const std::vector<IndexRange>& runs_;
  IndexRange now_{0, 0};
};

class ExportRun final : public HeadRun {
 public:
  ExportRun(ExportOptions& options, Team& team, const Console& console)
      : HeadRun(options, team, console), o_(options) {}

  bool begun() const override { return begun_; }
  std::string left(int64_t kept) const override {
    return leftover_text({kept, tiles_total_, "tiles", partial_});
  }
  void give_up() override { remove_partial(o_.out); }

 private:
  int work() override;
  /// A run's sink and, in a team, the same one as its processes share it.
  struct OpenExport {
    std::unique_ptr<ExportSink> sink;
    SharedExport* shared = nullptr;
  };

  void check_resume(ExportPlan& plan, const ExportWriteOptions& write);
  int end_empty(ExportPlan plan);
  RunPlan forecast(const ExportPlan& plan, std::span<const HeadTask> tasks, const TilePlan& tiles);
  OpenExport open(ExportPlan plan, const ExportWriteOptions& write);
  OpenExport open_together(ExportPlan plan, const ExportWriteOptions& write);
  void stream(ExportSink& sink, const TilePlan& tiles, std::stop_token stop);
  void stream_together(SharedExport& sink, const RowUnits& units, const TilePlan& tiles,
                       std::stop_token stop);
  /// Bytes that all processes wrote.
  int64_t finish_together(SharedExport& sink);
  void write(const OpenExport& opened, const RowUnits& units, const TilePlan& tiles,
             const std::stop_token& stop);
  ExportResult result_of(const ExportSink& sink, int64_t bytes, double seconds) const {
    return {o_.out,
            std::ssize(sink.tasks()),
            sink.tiles_total(),
            sink.resume().tiles_kept,
            bytes,
            seconds,
            capture_hash_};
  }
  void say_written(const ExportSink& sink, int64_t bytes, double seconds) const;

  ExportOptions& o_;
  std::string capture_hash_;
  int64_t tiles_total_ = 0;
  std::filesystem::path partial_;  ///< what an interrupted run leaves
  int64_t pieces_left_ = 0;        ///< of this process, for the first one to put in
  bool begun_ = false;
};

/// Throws where what --resume finds is of another export.
void ExportRun::check_resume(ExportPlan& plan, const ExportWriteOptions& write) {
  const InterruptWatch interrupts(console_);
  const bool with_values = plan.spec.product == ExportProduct::output;
  find_hashes(plan.spec, team_, capture(), with_values, interrupts.token());
  if (team_.is_first() && check_export_resume(plan, o_.out, write)) {
    say_complete(console_, o_.out);
  }
}

/// A part that has no head: an output of its own without any, so that a job's tasks all end well.
int ExportRun::end_empty(ExportPlan plan) {
  const ExportWriteOptions write = write_options_of(o_, capture());
  if (is_only_planned({[&] { check_export_target(plan, o_.out, write); },
                       [&] { check_resume(plan, write); },
                       [] { return RunPlan{.command = "export"}; }})) {
    return kExitOk;
  }
  find_hashes(plan.spec, team_, capture(), false, console_.stop().get_token());
  capture_hash_ = plan.spec.capture_hash;
  const auto sink = make_export(std::move(plan), o_.out, write);
  if (sink->resume().complete) {
    say_complete(console_, o_.out);
  } else {
    sink->end();
    console_.say(fmt::format("wrote {} (no heads)", o_.out));
  }
  if (o_.json) print_export_result(result_of(*sink, 0, 0));
  return kExitOk;
}

RunPlan ExportRun::forecast(const ExportPlan& plan, std::span<const HeadTask> tasks,
                            const TilePlan& tiles) {
  RunPlan run =
      forecast_run("export", tasks, plan.request(), tiles, backend(), budget(), o_.dry_run);
  run = shared_plan(std::move(run),
                    plan.spec.is_sharded() ? std::ssize(plan.layout.groups) : std::ssize(tasks));
  run.heads = std::ssize(plan.tasks);
  const ExportSize size = estimate_export(plan);
  run.payload_bytes = size.payload_bytes;
  run.file_bytes = size.file_bytes;
  run.at_most = size.at_most;
  run.free_bytes = free_disk_bytes(o_.out);
  run.seconds_note = " of computation" + processes_text(run);
  return run;
}

ExportRun::OpenExport ExportRun::open(ExportPlan plan, const ExportWriteOptions& write) {
  if (!team_.is_alone()) return open_together(std::move(plan), write);
  OpenExport opened{make_export(std::move(plan), o_.out, write)};
  begun_ = !opened.sink->resume().complete;
  tiles_total_ = opened.sink->tiles_total();
  return opened;
}

/// The first process makes the file, or finds it; the others join it.
ExportRun::OpenExport ExportRun::open_together(ExportPlan plan, const ExportWriteOptions& write) {
  std::unique_ptr<SharedExport> sink;
  std::string invitation;
  if (team_.is_first()) {
    sink = make_shared_export(std::move(plan), o_.out, write);
    begun_ = !sink->resume().complete;
    tiles_total_ = sink->tiles_total();
    team_.keep(sink->tiles_kept());
    invitation = OrderedJson{tiles_total_, sink->invite().text()}.dump();
  }
  const OrderedJson first = OrderedJson::parse(team_.exchange(invitation).front());
  if (!team_.is_first()) {
    begun_ = true;
    tiles_total_ = first.at(0).get<int64_t>();
    sink =
        join_shared_export(std::move(plan), o_.out, write,
                           ExportInvitation::parse(first.at(1).get<std::string>()), team_.rank());
  }
  SharedExport* const shared = sink.get();
  return {std::move(sink), shared};
}

/// Streams the maps, alone; throws Error(interrupted) when it was stopped. Whatever stops it, what
/// is complete by then is committed.
void ExportRun::stream(ExportSink& sink, const TilePlan& tiles, std::stop_token stop) {
  const auto there = [&](int64_t task, IndexRange rows, IndexRange cols) {
    return sink.has_tile(task, rows, cols);
  };
  bool complete = false;
  try {
    complete = run_tiles({console_, "export", backend(), budget(), std::move(stop)}, sink.tasks(),
                         tiles, sink, sink.resume().resumed ? SkipTile(there) : SkipTile());
    if (!complete) sink.suspend();
  } catch (...) {
    commit_what_can_be(sink);
    team_.keep(sink.tiles_kept());
    throw;
  }
  team_.keep(sink.tiles_kept());
  if (!complete) throw Error(ErrorCode::interrupted, "interrupted");
}

void ExportRun::stream_together(SharedExport& sink, const RowUnits& units, const TilePlan& tiles,
                                std::stop_token stop) {
  const auto all = std::ssize(units.tasks);
  Progress progress(console_, "export", all,
                    static_cast<double>(tiles.entries) / static_cast<double>(all), "entries");
  std::atomic<int64_t> begun{0};
  StreamControl control;
  control.stop = std::move(stop);
  const auto runs = sink.whole_runs();
  team_.begin_units(runs ? std::ssize(*runs) : all);
  const std::vector<IndexRange> none;
  TasksOfRuns whole(team_, sink, runs ? *runs : none);
  control.next_task = [&] {
    const std::optional<int64_t> unit = runs ? whole.next() : team_.next_unit();
    begun = unit.value_or(all);
    return unit;
  };
  control.progress = [&](const StreamProgress&) { progress.update(begun); };
  control.skip = [&](int64_t unit, IndexRange rows, IndexRange cols) {
    const RowUnits::Place& place = units.places[static_cast<size_t>(unit)];
    return sink.has_tile(place.task, {rows.begin + place.first_row, rows.end + place.first_row},
                         cols);
  };
  UnitSink unit_sink(sink, sink.tasks(), units);
  try {
    const bool complete =
        StreamingEngine(backend(), budget()).run(units.tasks, tiles, unit_sink, control);
    if (!complete) throw Error(ErrorCode::interrupted, "interrupted");
    pieces_left_ = sink.hand_in();
  } catch (...) {
    commit_what_can_be(sink);
    team_.keep(sink.tiles_kept());
    throw;
  }
  team_.keep(sink.tiles_kept());
}

int64_t ExportRun::finish_together(SharedExport& sink) {
  int64_t tiles = 0, bytes = 0;
  PromisedSums left;
  for (const std::string& text : team_.exchange(
           fmt::format("[{},{},{}]", sink.tiles_done(), sink.bytes_written(), pieces_left_))) {
    const OrderedJson done = OrderedJson::parse(text);
    tiles += done.at(0).get<int64_t>();
    bytes += done.at(1).get<int64_t>();
    left.pieces.push_back(done.at(2).get<int64_t>());
  }
  if (team_.is_first()) sink.finish(left, tiles);
  return bytes;
}

void ExportRun::say_written(const ExportSink& sink, int64_t bytes, double seconds) const {
  if (!team_.is_first()) return;
  const bool found = sink.resume().complete;
  if (found) say_complete(console_, o_.out);
  if (o_.json) print_export_result(result_of(sink, bytes, seconds));
  if (!found) console_.say(written_text(o_, bytes, seconds));
  for (const std::string& note : sink.notes()) console_.say(note);
}

/// Streams what is missing, and says what was written.
void ExportRun::write(const OpenExport& opened, const RowUnits& units, const TilePlan& tiles,
                      const std::stop_token& stop) {
  ExportSink& sink = *opened.sink;
  if (sink.resume().complete) {
    say_written(sink, 0, 0);
    team_.exchange("");
    return;
  }
  for (const std::string& warning : sink.warnings()) console_.warn(warning);
  say_export_resume(console_, sink);
  const auto start = std::chrono::steady_clock::now();
  int64_t bytes = 0;
  if (opened.shared != nullptr) {
    stream_together(*opened.shared, units, tiles, stop);
    bytes = finish_together(*opened.shared);
  } else {
    stream(sink, tiles, stop);
    bytes = sink.bytes_written();
  }
  // Each keeps its sink, and so its files, until the first one has put in all.
  team_.exchange("");
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  say_written(sink, bytes, spent.count());
}

int ExportRun::work() {
  settle_pixels(pixel_sequences(calls(), false, o_.capture), o_.queries, console_);
  ExportPlan plan = make_export_spec(o_, capture(), backend(), share());
  check_max_size(o_, plan);
  partial_ = o_.out + (plan.spec.is_sharded() ? ".d.part" : ".part");
  agree({{"options", OrderedJson::parse(plan.spec.options_json)},
         {"heads", plan.tasks.size()},
         {"rows", plan.tasks.empty() ? 0 : plan.tasks.front().num_rows()},
         {"--sync", o_.sync}});
  if (plan.spec.product == ExportProduct::pooled) {
    return export_pooled(std::move(plan),
                         {o_, backend(), capture(), console_, team_, budget(), begun_,
                          [&](const HeadRunPlan& planned) { return is_only_planned(planned); },
                          [&](std::span<const ReductionJob> jobs) -> const CheckedRun& {
                            return check_inputs(jobs);
                          }});
  }
  if (plan.tasks.empty()) return end_empty(std::move(plan));
  const ExportWriteOptions how_written = write_options_of(o_, capture());
  RowUnits units;
  if (!team_.is_alone()) {
    units = cut_into_units(plan.tasks, plan.request().chunk_rows, least_units(plan.spec, team_));
  }
  const std::span<const HeadTask> tasks = team_.is_alone() ? plan.tasks : units.tasks;
  const TilePlan tiles = plan_tiles(tasks, plan.request(), backend(), budget().room(),
                                    o_.run.threads, threads_at_disk(plan, how_written));
  if (is_only_planned({[&] { check_export_target(plan, o_.out, how_written); },
                       [&] { check_resume(plan, how_written); },
                       [&] { return forecast(plan, tasks, tiles); }})) {
    return kExitOk;
  }
  if (team_.is_first()) {
    const RunPlan expected = forecast(plan, tasks, tiles);
    say_export_start(console_, o_, plan.spec, expected, backend());
  }
  const bool with_values = plan.spec.product == ExportProduct::output;
  const std::span<const HeadTask> looked_at = own_items(team_, plan.tasks);
  const CheckedRun& run = check_inputs(looked_at, with_values);
  if (!looked_at.empty()) {
    run.check_logits(looked_at, backend(), budget(), plan.request().quantity);
  }
  find_hashes(plan.spec, team_, capture(), with_values, run.stop());
  capture_hash_ = plan.spec.capture_hash;
  write(open(std::move(plan), how_written), units, tiles, run.stop());
  return kExitOk;
}

}  // namespace

int run_export(const ExportOptions& o) {
  check_export_name(o.out);
  return run_heads<ExportRun>(o);
}

}  // namespace attnscope
