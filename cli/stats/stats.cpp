#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/run_backend.h"
#include "cli/stats/stats_jobs.h"
#include "cli/stats/stats_options.h"
#include "cli/stats/stats_record.h"
#include "cli/stats/stats_sink.h"
#include "core/base/error.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/value_check.h"
#include "io/results/finished_run.h"
#include "io/results/stats_files.h"
#include "io/results/stats_journal.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

/// What decides the result beside the capture's content.
Json content_options(const StatsOptions& o, const ClassThresholds& thresholds,
                     const std::string& backend) {
  Json json{{"steps", o.selection.steps},     {"layers", o.selection.layers},
            {"heads", o.selection.heads},     {"batch", o.selection.batch},
            {"branch", o.selection.branches}, {"kind", o.selection.kinds},
            {"score", o.capture.score},       {"backend", backend}};
  json["sample"] = o.sample > 0 ? Json(o.sample) : Json();
  json["band"] = o.band >= 0 ? Json(o.band) : Json();
  json["exact"] = o.exact;
  json["with"] = o.extras;
  json["thresholds"] = {{"sink", thresholds.sink},
                        {"text", thresholds.text},
                        {"temporal", thresholds.temporal},
                        {"spatial", thresholds.spatial},
                        {"local", thresholds.local}};
  return json;
}

ExportSpec stats_spec(const StatsJobs& s, const Capture& capture, const Json& options,
                      const std::string& hash) {
  ExportSpec spec;
  spec.product = ExportProduct::stats;
  spec.encoding = Encoding::f32;
  spec.calls = s.calls;
  for (const SelectedCall& selected : s.calls) {
    spec.rows.push_back({0, selected.call->problem->num_queries()});
    spec.keys.push_back({0, selected.call->problem->num_keys()});
  }
  spec.capture_name = capture.path().filename().string();
  spec.capture_hash = hash;
  spec.options_json = options.dump();
  spec.backend = options.at("backend").get<std::string>();
  return spec;
}

void say_plan(const StatsOptions& o, const Console& console, const StatsJobs& s,
              const ReductionPlan& plan, double seconds, int64_t budget) {
  if (o.dry_run && o.json) {
    return print_json({{"format", "attnscope-plan/1"},
                       {"heads", s.jobs.size()},
                       {"rows", plan.rows},
                       {"entries", plan.entries},
                       {"flops", plan.flops},
                       {"expected_seconds", seconds},
                       {"memory_bytes", plan.bytes_total},
                       {"budget_bytes", budget},
                       {"workers", plan.workers}},
                      false);
  }
  const std::string text = fmt::format("stats of {} head{}: {}FLOP{}, {} of {}", s.jobs.size(),
                                       s.jobs.size() == 1 ? "" : "s", format_count(plan.flops),
                                       seconds < 0 ? "" : ", about " + format_seconds(seconds),
                                       format_bytes(plan.bytes_total), format_bytes(budget));
  if (o.dry_run) {
    fmt::print("{}\n", text);
  } else {
    console.say(text);
  }
}

/// Runs the jobs that are left; throws Error(interrupted) when it was stopped.
void compute(const StatsJobs& s, const ReductionPlan& plan, const TileBackend& backend,
             MemoryBudget& budget, RecordSink& sink, const StatsJournal* journal, size_t kept,
             const InterruptWatch& interrupts, const Console& console) {
  Progress progress(console, "stats", plan.panels, plan.entries / static_cast<double>(plan.panels),
                    "entries");
  StreamControl control;
  control.stop = interrupts.token();
  control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done); };
  if (ReductionStream(backend, budget).run(s.jobs, plan, sink, control)) return;
  const size_t done = kept + sink.done();
  throw Error(ErrorCode::interrupted,
              journal == nullptr || done == 0
                  ? std::string("interrupted: nothing was kept")
                  : fmt::format("interrupted: {} of {} heads are in {}; --resume goes on", done,
                                kept + s.jobs.size(), journal->part_path().string()));
}

void write_output(const std::string& extension, StatsJournal& journal, const Json& about,
                  const ExportSpec& spec, const std::vector<Json>& records) {
  journal.finish([&](const std::filesystem::path& path) {
    if (extension == ".json") write_stats_json(about, records, path);
    if (extension == ".csv") write_stats_csv(records, path);
    if (extension == ".h5") write_stats_hdf5(spec, records, path);
  });
}

/// Whether --resume finds the output complete; throws Error(file) where it is of another run.
bool finished_already(const StatsOptions& o, const Json& about, const Console& console) {
  std::error_code none;
  if (!o.resume || o.force || !std::filesystem::exists(o.out, none)) return false;
  expect_same_run(finished_run(o.out, "stats"),
                  {{"capture_hash", about["capture_hash"]}, {"options", about["options"]}}, o.out);
  console.say(o.out + " is complete already");
  return true;
}

void print_records(const StatsOptions& o, const Json& about, const std::vector<Json>& records) {
  if (o.json) {
    Json json{{"format", "attnscope-stats/1"}};
    json.update(about);
    json["heads"] = records;
    print_json(json, true);
  } else if (o.out.empty()) {
    print_stats_table(records);
  }
}

int run_stats(const StatsOptions& o) {
  const Console console(o.quiet);
  check_stats_options(o);
  const ClassThresholds thresholds = parse_thresholds(o);
  const Capture capture = open_capture(o.capture, console);
  StatsJobs s = make_stats_jobs(o, capture);
  const auto backend = make_run_backend(o.run, console);
  MemoryBudget budget(memory_limit(o.run));
  const MemoryReservation rows_held =
      budget.reserve(RecordSink::bytes(o, s.jobs, 2), "the rows' values");
  ReductionPlan plan = plan_reductions(s.jobs, *backend, budget.available(), o.run.threads);
  constexpr double kLongFlops = 2e12;
  double seconds = -1;
  if (o.dry_run || plan.flops > kLongFlops) {
    seconds = ReductionStream(*backend, budget).expected_seconds(s.jobs, plan);
  }
  const ExportFileOptions file_options{
      .force = o.force, .resumable = true, .resume = o.resume, .inputs = capture.files()};
  if (!o.out.empty() && !o.dry_run) ExportFile::check_target(o.out, file_options);
  say_plan(o, console, s, plan, seconds, budget.limit());
  if (o.dry_run) return kExitOk;

  const InterruptWatch interrupts(console);
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : s.jobs) tasks.push_back(job.task);
  check_values(tasks, interrupts.token());
  const std::string hash = capture.content_hash(s.calls, false, interrupts.token());
  const Json options = content_options(o, thresholds, recorded_backend(*backend, s.calls));
  const Json about{{"capture", capture.path().filename().string()},
                   {"capture_hash", hash},
                   {"options", options}};
  if (finished_already(o, about, console)) return kExitOk;
  std::optional<StatsJournal> journal;
  std::vector<Json> kept;
  const ExportSpec spec = stats_spec(s, capture, options, hash);
  if (!o.out.empty()) {
    journal.emplace(
        o.out,
        Json{{"format", "attnscope-stats-part/1"}, {"capture_hash", hash}, {"options", options}},
        file_options);
    kept = journal->kept();
    if (!kept.empty()) {
      console.say(fmt::format("resuming {}: {} of {} heads are there",
                              journal->part_path().string(), kept.size(), s.jobs.size()));
      drop_known(s, kept);
    }
  }
  RecordSink sink(s.jobs, s.call_of_job, o, thresholds, journal ? &*journal : nullptr);
  if (!s.jobs.empty()) {
    plan = plan_reductions(s.jobs, *backend, budget.available(), o.run.threads);
    compute(s, plan, *backend, budget, sink, journal ? &*journal : nullptr, kept.size(), interrupts,
            console);
  }
  std::vector<Json> records = sink.take_records();
  records.insert(records.end(), kept.begin(), kept.end());
  sort_records(records, o.sort);
  if (journal) {
    write_output(extension_of(o), *journal, about, spec, records);
    console.say(fmt::format("wrote {} ({} heads)", o.out, records.size()));
  }
  print_records(o, about, records);
  return kExitOk;
}

}  // namespace

Command add_stats_command(CLI::App& app) {
  auto options = std::make_shared<StatsOptions>();
  StatsOptions& o = *options;
  CommandParser command(
      app, "stats", "a line of numbers a head: entropy, text, frames, sinks, and what kind it is");
  add_stats_options(command, o);
  command.footer(
      "Examples:\n"
      "  attnscope stats dump/ --layers 12 --sort same_frame_mass\n"
      "  attnscope stats dump/ --sample 256 --json\n"
      "  attnscope stats dump/ -o heads.h5 --with frame_frame,column_mass");
  return {command, [options] { return run_stats(*options); }};
}

}  // namespace attnscope
