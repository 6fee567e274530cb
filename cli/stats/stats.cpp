#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/capture_check.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/stream_run.h"
#include "cli/stats/stats_jobs.h"
#include "cli/stats/stats_options.h"
#include "cli/stats/stats_record.h"
#include "cli/stats/stats_sink.h"
#include "core/base/error.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/logit_check.h"
#include "core/stream/value_check.h"
#include "io/results/output_provenance.h"
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
  for (const SelectedCall& selected : s.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    spec.calls.push_back({.selected = selected,
                          .rows = {0, problem.num_queries()},
                          .row_list = {},
                          .keys = {0, problem.num_keys()}});
  }
  spec.capture_name = capture.path().filename().string();
  spec.capture_hash = hash;
  spec.options_json = options.dump();
  spec.backend = options.at("backend").get<std::string>();
  return spec;
}

/// What is about to happen, in one line.
void say_start(const Console& console, const RunPlan& f) {
  console.say(fmt::format("stats of {} head{}: {}FLOP{}, {} of {}", f.heads,
                          f.heads == 1 ? "" : "s", format_count(f.flops),
                          f.seconds < 0 ? "" : ", about " + format_seconds(f.seconds),
                          format_bytes(f.memory_bytes), format_bytes(f.budget_bytes)));
}

/// Runs the jobs that are left; throws Error(interrupted) when it was stopped.
void compute(const StatsJobs& s, const ReductionPlan& plan, const TileBackend& backend,
             MemoryBudget& budget, RecordSink& sink, const StatsJournal* journal, size_t kept,
             const InterruptWatch& interrupts, const Console& console) {
  if (run_reductions({console, "stats", backend, budget, interrupts.token()}, s.jobs, plan, sink)) {
    return;
  }
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
  expect_same_run(output_provenance(o.out, "stats"),
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
  check_capture(capture, o.capture, *backend, memory_limit(o.run), console);
  MemoryBudget budget(memory_limit(o.run));
  const MemoryReservation rows_held =
      budget.reserve(RecordSink::bytes(o, s.jobs, 2), "the rows' values");
  ReductionPlan plan = plan_reductions(s.jobs, *backend, budget.available(), o.run.threads);
  RunPlan forecast = plan_of("stats", static_cast<int64_t>(s.jobs.size()), plan, budget);
  if (wants_estimate(o.dry_run, plan.flops)) {
    forecast.seconds = ReductionStream(*backend, budget).expected_seconds(s.jobs, plan);
  }
  const OutputFileOptions file_options{
      .force = o.force, .resumable = true, .resume = o.resume, .inputs = capture.files()};
  if (!o.out.empty() && !o.dry_run) OutputFile::check_target(o.out, file_options);
  if (o.dry_run) {
    print_plan(forecast, o.json);
    return kExitOk;
  }
  say_start(console, forecast);

  const InterruptWatch interrupts(console);
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : s.jobs) tasks.push_back(job.task);
  check_values(tasks, interrupts.token());
  check_logits(tasks, *backend, budget, interrupts.token());
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
        capture.path().filename().string(), file_options);
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
