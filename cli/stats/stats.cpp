#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>

#include "cli/common/capture_check.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/forecast.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/common/shard_option.h"
#include "cli/common/stream_run.h"
#include "cli/common/value_failure.h"
#include "cli/stats/stats_jobs.h"
#include "cli/stats/stats_options.h"
#include "cli/stats/stats_table.h"
#include "core/heads/head_record_sink.h"
#include "core/reduce/reduction_stream.h"
#include "io/export/format/export_part_json.h"
#include "io/files/output_file.h"
#include "io/results/output_provenance.h"
#include "io/results/stats_files.h"
#include "io/results/stats_hdf5.h"
#include "io/results/stats_journal.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

/// What decides the result beside the capture's content.
Json content_options(const StatsOptions& o, const ClassThresholds& thresholds,
                     const std::string& backend, const std::string& score) {
  Json json{{"steps", o.selection.steps},
            {"layers", o.selection.layers},
            {"heads", o.selection.heads},
            {"batch", o.selection.batch},
            {"branch", o.selection.branches},
            {"kind", o.selection.kinds},
            {"score", score},
            {"backend", backend}};
  // Only where they choose: captures without them, and their unfinished files, are as before.
  if (!o.selection.blocks.empty()) json["blocks"] = o.selection.blocks;
  if (!o.selection.slots.empty()) json["slots"] = o.selection.slots;
  if (o.selection.chunks != "all") json["chunks"] = o.selection.chunks;
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

ExportSpec stats_spec(const StatsJobs& s, const Capture& capture, const Json& options) {
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
  spec.options_json = options.dump();
  spec.backend = options.at("backend").get<std::string>();
  return spec;
}

/// What a result says of what it was made of.
Json identity_of(const ExportSpec& spec, const Json& options) {
  Json identity{{"capture_hash", spec.capture_hash}, {"options", options}};
  if (spec.share) identity.update(part_identity(spec.share->part));
  return identity;
}

ReductionPlan plan_stats(const StatsOptions& o, const StatsJobs& s, const TileBackend& backend,
                         const MemoryBudget& budget) {
  return plan_reductions(s.jobs, backend, budget.available(), o.run.threads,
                         HeadRecordSink::head_bytes(o.arrays(), s.jobs));
}

/// What is about to happen, in one line.
void say_start(const Console& console, const RunPlan& f) {
  console.say(fmt::format("stats of {}: {}FLOP{}, memory {} (limit {})", heads_text(f.heads),
                          format_count(f.flops), about_text(f), format_bytes(f.memory_bytes),
                          format_bytes(f.budget_bytes)));
}

/// What heads are measured with. Borrows.
struct Measurement {
  const StatsOptions& options;
  const ClassThresholds& thresholds;
  const TileBackend& backend;
  MemoryBudget& budget;
  const Console& console;
  std::stop_token stop;
};

/// The records of all jobs; of those that the journal has, the jobs are taken out. Throws
/// Error(interrupted) when it was stopped.
std::vector<HeadRecord> measure(const Measurement& m, StatsJobs& s, StatsJournal* journal) {
  const auto parts = [&, total = static_cast<int64_t>(s.jobs.size())](size_t done) {
    return KeptParts{static_cast<int64_t>(done), total, "heads", journal->part_path()};
  };
  std::vector<HeadRecord> records;
  if (journal != nullptr && !journal->kept().empty()) {
    records = journal->kept();
    m.console.say(resuming_text(parts(records.size())));
    drop_known(s, records);
  }
  if (s.jobs.empty()) return records;
  HeadRecordSink sink(s.jobs, {m.options.arrays(), m.thresholds, s.tokens}, [&](HeadRecord record) {
    if (journal != nullptr) journal->append(record);
    records.push_back(std::move(record));
  });
  const ReductionPlan plan = plan_stats(m.options, s, m.backend, m.budget);
  try {
    const StreamJob job{m.console, "stats", m.backend, m.budget, m.stop};
    const bool complete = run_reductions(job, s.jobs, plan, sink);
    if (journal != nullptr) journal->flush();
    if (complete) return records;
  } catch (const std::exception& error) {
    if (journal != nullptr && !records.empty() && !is_of_values(error)) {
      m.console.warn(leftover_text(parts(records.size())));
    }
    throw;
  }
  throw interrupted_error(journal == nullptr ? std::string(kNothingKept)
                                             : leftover_text(parts(records.size())));
}

/// The same for an output, whose journal goes with an error of the values.
std::vector<HeadRecord> measure_for(const Measurement& m, StatsJobs& s,
                                    std::optional<StatsJournal>& journal) {
  try {
    return measure(m, s, journal ? &*journal : nullptr);
  } catch (const Error& error) {
    if (!journal || !is_of_values(error)) throw;
    journal.reset();
    give_up_partial(m.options.out, error);
  }
}

/// With --json, what a complete output holds. Whether its heads must be measured for that: an .h5
/// has their numbers, and not all that the JSON says.
bool print_complete(const StatsOptions& o, const Console& console) {
  if (!o.json) return false;
  if (extension_of(o) == ".json") {
    print_json(read_stats_json(o.out), true);
    return false;
  }
  console.say("its heads are measured again for --json");
  return true;
}

void write_output(const std::string& extension, StatsJournal& journal, const Json& about,
                  const ExportSpec& spec, const std::vector<HeadRecord>& records) {
  journal.finish([&](const std::filesystem::path& path) {
    if (extension == ".json") write_stats_json(about, records, path);
    if (extension == ".csv") write_stats_csv(records, path);
    if (extension == ".h5") write_stats_hdf5(spec, records, path);
  });
}

/// The plan of what is left to do; nothing where a part has no head.
RunPlan forecast_stats(const StatsOptions& o, const StatsJobs& s, const TileBackend& backend,
                       MemoryBudget& budget) {
  if (s.jobs.empty()) return {.command = "stats"};
  return forecast_run("stats", s.jobs, plan_stats(o, s, backend, budget), backend, budget,
                      o.dry_run);
}

int run_stats(const StatsOptions& asked) {
  const Console console(asked.quiet);
  StatsOptions o = asked;
  refuse_tasks(o.shard, o.alone, o.out, kPartOfEach);
  const std::optional<PlanShare> share = chosen_share(o.shard, console);
  o.out = name_of_share(o.out, share);
  check_stats_options(o);
  const ClassThresholds thresholds = parse_thresholds(o);
  const Capture capture = open_capture(o.capture, o.run, console);
  StatsJobs s = make_stats_jobs(o, capture);
  const auto backend = make_run_backend(o.run, console);
  const int64_t memory = memory_beside(capture, o.run);
  check_capture(capture, o.capture, *backend, memory, console);
  const Json options =
      content_options(o, thresholds, recorded_backend(*backend, s.calls), score_text(s.calls));
  ExportSpec spec = stats_spec(s, capture, options);
  if (share) {
    spec.share = share_selection(s.calls, *share, ShareUnit::heads,
                                 plan_text("stats", options, spec.capture_name));
    keep_share(s, *spec.share);
  }
  MemoryBudget budget(memory);
  const RunPlan forecast = forecast_stats(o, s, *backend, budget);
  const OutputFileOptions file_options{.force = o.force,
                                       .resumable = true,
                                       .resume = o.resume,
                                       .inputs = capture.files(),
                                       .sources = capture.inputs()};
  if (o.dry_run) {
    print_plan(forecast, o.json);
    return kExitOk;
  }
  if (!o.out.empty()) OutputFile::check_target(o.out, file_options);
  say_start(console, forecast);

  const CheckedRun run(console, s.jobs, *backend);
  if (!s.jobs.empty()) run.check_logits(s.jobs, *backend, budget);
  spec.find_hashes(capture, false, run.stop());
  const std::string& name = spec.capture_name;
  const Json identity = identity_of(spec, options);
  const bool complete =
      o.resume && !o.force && is_complete_already(console, o.out, "stats", identity);
  if (complete && !print_complete(o, console)) return kExitOk;
  std::optional<StatsJournal> journal;
  if (!o.out.empty() && !complete) {
    Json first{{"format", "attnscope-stats-part/1"}};
    first.update(identity);
    journal.emplace(o.out, std::move(first), name, file_options);
  }
  std::vector<HeadRecord> records =
      measure_for({o, thresholds, *backend, budget, console, run.stop()}, s, journal);
  capture.require_unchanged();
  sort_records(records, find_head_field(o.sort));
  Json about{{"capture", name}};
  about.update(identity);
  if (spec.share) about["part"] = Json::parse(export_part_json(spec));
  if (journal) {
    write_output(extension_of(o), *journal, about, spec, records);
    console.say(fmt::format("wrote {} ({} heads)", o.out, records.size()));
  }
  print_result(
      o.json, journal.has_value(), [&] { return stats_json(about, records); },
      [&] { print_stats_table(records); });
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
      "  attnscope stats dump/ -o heads.h5 --with frame_frame,column_mass\n"
      "  attnscope stats dump/ -o heads-{shard}.json --shard 0/4   # then: attnscope merge");
  return {command, [options] { return run_stats(*options); }};
}

}  // namespace attnscope
