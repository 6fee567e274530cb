#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "cli/common/capture_check.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/forecast.h"
#include "cli/common/left_out_names.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/common/shard_option.h"
#include "cli/common/stream_run.h"
#include "cli/common/team_records.h"
#include "cli/common/team_run.h"
#include "cli/common/team_steps.h"
#include "cli/common/unknown_state.h"
#include "cli/common/value_failure.h"
#include "cli/stats/stats_jobs.h"
#include "cli/stats/stats_options.h"
#include "core/base/error.h"
#include "core/heads/head_record.h"
#include "core/heads/head_record_sink.h"
#include "core/reduce/reduction_stream.h"
#include "io/capture/capture_guard.h"
#include "io/export/format/export_part_json.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/results/head_json.h"
#include "io/results/output_provenance.h"
#include "io/results/stats_files.h"
#include "io/results/stats_hdf5.h"

namespace attnscope {
namespace {

/// What decides the result beside the capture's content.
OrderedJson content_options(const StatsOptions& o, const ClassThresholds& thresholds,
                            const std::string& backend, const std::string& score) {
  OrderedJson json{{"steps", o.selection.steps},
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
  json["sample"] = o.sample > 0 ? OrderedJson(o.sample) : OrderedJson();
  json["band"] = o.band >= 0 ? OrderedJson(o.band) : OrderedJson();
  json["exact"] = o.exact;
  add_left_out(json, o.capture);
  json["with"] = o.extras;
  json["thresholds"] = {{"sink", thresholds.sink},
                        {"text", thresholds.text},
                        {"temporal", thresholds.temporal},
                        {"spatial", thresholds.spatial},
                        {"local", thresholds.local}};
  return json;
}

ExportSpec stats_spec(const StatsJobs& s, const Capture& capture, const OrderedJson& options) {
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
OrderedJson identity_of(const ExportSpec& spec, const OrderedJson& options) {
  OrderedJson identity{{"capture_hash", spec.capture_hash}, {"options", options}};
  if (spec.share) identity.update(part_identity(spec.share->part));
  return identity;
}

ReductionPlan plan_stats(const StatsOptions& o, const StatsJobs& s, const TileBackend& backend,
                         const MemoryBudget& budget) {
  return plan_reductions(s.jobs, backend, budget.room(), o.run.threads,
                         HeadRecordSink::head_bytes(o.arrays(), s.jobs));
}

/// What is about to happen, in one line.
void say_start(const Console& console, const RunPlan& f) {
  console.say(fmt::format("stats of {}{}: {}FLOP{}, memory {} (limit {})", heads_text(f.heads),
                          processes_text(f), format_count(f.flops), about_text(f),
                          format_bytes(f.memory_bytes), format_bytes(f.budget_bytes)));
}

/// Outside the main stack, the block instead of the layer.
std::string slot_of(const HeadName& name) {
  return name.layer == kNoLayer ? name.place.text() : name.place.slot;
}

/// The column of chunks, empty where no call is a piece of a stream.
std::string chunk_column(bool any, const std::string& text) {
  return any ? fmt::format("{:>5} ", text) : "";
}

/// The records as a table for people, on standard output: the fields that have a heading.
void print_stats_table(std::span<const HeadRecord> records) {
  size_t branch_width = 6, slot_width = 0;
  bool chunks = false;
  for (const HeadRecord& record : records) {
    branch_width = std::max(branch_width, one_line(record.name.branch).size());
    slot_width = std::max(slot_width, one_line(slot_of(record.name)).size());
    chunks |= record.name.place.has_chunk();
  }
  if (slot_width > 0) slot_width = std::max<size_t>(slot_width, 4) + 1;
  fmt::print("{:>5} {}{:>5} {:<{}}{:<{}} {:<5} {:>2} {:>4} {:<8}", "step",
             chunk_column(chunks, "chunk"), "layer", slot_width > 0 ? "slot" : "", slot_width,
             "branch", branch_width, "kind", "b", "head", "class");
  for (const HeadField& field : head_fields()) {
    if (!field.heading.empty()) fmt::print(" {:>8}", field.heading);
  }
  fmt::print("\n");
  for (const HeadRecord& record : records) {
    const HeadName& name = record.name;
    const Unrecorded& unrecorded = name.place.unrecorded;
    const bool no_layer = unrecorded.layer || name.layer == kNoLayer;
    const std::string chunk = name.place.has_chunk() ? std::to_string(name.place.chunk) : "-";
    fmt::print("{:>5} {}{:>5} {:<{}}{:<{}} {:<5} {:>2} {:>4} {:<8}",
               unrecorded.step ? "-" : std::to_string(name.step), chunk_column(chunks, chunk),
               no_layer ? "-" : std::to_string(name.layer),
               slot_width > 0 ? one_line(slot_of(name)) : "", slot_width,
               unrecorded.branch ? "-" : one_line(name.branch), branch_width, name.kind, name.batch,
               name.head, head_class_name(record.metrics.head_class));
    for (const HeadField& field : head_fields()) {
      if (field.heading.empty()) continue;
      const auto value = number_of(record.metrics, field);
      fmt::print(" {:>8}", value ? fmt::format("{:.{}f}", *value, field.decimals) : "-");
    }
    fmt::print("\n");
  }
}

/// The run, as one of the processes that do it together, or alone.
class StatsRun final : public TeamWork {
 public:
  StatsRun(const StatsOptions& options, Team& team, const Console& console)
      : o_(options), team_(team), console_(console) {}

  int run() override;
  bool begun() const override { return begun_; }
  std::string left(int64_t kept) const override {
    return leftover_text({kept, total_, "heads", o_.out + ".part"});
  }
  void give_up() override {
    found_.close();
    remove_partial(o_.out);
  }

 private:
  void agree(const StatsJobs& s, const Capture& capture, const OrderedJson& options);
  RunPlan forecast(const StatsJobs& s, const TileBackend& backend, MemoryBudget& budget) const;
  void say_plan(const StatsJobs& s, const OutputFileOptions& options, const TileBackend& backend,
                MemoryBudget& budget) const;
  bool is_there(const OrderedJson& identity);
  void print_complete() const;
  void open_journal(StatsJobs& s, const OrderedJson& identity, const std::string& capture,
                    const OutputFileOptions& options);
  void measure(const StatsJobs& s, const ClassThresholds& thresholds, const TileBackend& backend,
               MemoryBudget& budget, const std::stop_token& stop);
  void name_jobs(const StatsJobs& s);
  std::optional<int64_t> take(const OrderedJson& json);
  void write(const OrderedJson& identity, const ExportSpec& spec);

  StatsOptions o_;
  Team& team_;
  const Console& console_;
  int64_t total_ = 0;
  bool begun_ = false;
  std::vector<HeadRecord> records_;
  std::map<HeadName, int64_t> jobs_;  ///< all of the plan's, by place
  TeamRecords found_{team_, [this](const OrderedJson& json) { return take(json); }};
};

void StatsRun::agree(const StatsJobs& s, const Capture& capture, const OrderedJson& options) {
  agree_on_run(team_, capture, s.calls,
               {{"options", options},
                {"heads", s.jobs.size()},
                {"-o", o_.out},
                {"--json", o_.json},
                {"--resume", o_.resume},
                {"--force", o_.force},
                {"--dry-run", o_.dry_run}});
}

void StatsRun::name_jobs(const StatsJobs& s) {
  for (const ReductionJob& job : s.jobs) {
    jobs_.emplace(head_name(job.task.problem->id(), job.task.batch, job.task.head),
                  std::ssize(jobs_));
  }
}

/// A record that another run or process found.
std::optional<int64_t> StatsRun::take(const OrderedJson& json) {
  std::optional<HeadRecord> record = parse_head_json(json);
  const auto job = record ? jobs_.find(record->name) : jobs_.end();
  if (job == jobs_.end()) return std::nullopt;
  records_.push_back(std::move(*record));
  return job->second;
}

/// The plan of what is left to do; nothing where a part has no head.
RunPlan StatsRun::forecast(const StatsJobs& s, const TileBackend& backend,
                           MemoryBudget& budget) const {
  if (s.jobs.empty()) return {.command = "stats"};
  RunPlan run = forecast_run("stats", s.jobs, plan_stats(o_, s, backend, budget), backend, budget,
                             o_.dry_run);
  if (!team_.is_alone()) share_forecast(run, team_, std::ssize(s.jobs));
  return run;
}

/// What is about to happen, or would with --dry-run.
void StatsRun::say_plan(const StatsJobs& s, const OutputFileOptions& options,
                        const TileBackend& backend, MemoryBudget& budget) const {
  const RunPlan expected = forecast(s, backend, budget);
  if (o_.dry_run) return print_plan(expected, o_.json);
  if (!o_.out.empty()) OutputFile::check_target(o_.out, options);
  say_start(console_, expected);
}

/// Whether the output is complete already, as the first process finds it.
bool StatsRun::is_there(const OrderedJson& identity) {
  const bool complete = team_.is_first() && o_.resume && !o_.force &&
                        is_recorded_already(console_, o_.out, "stats", identity, total_);
  return !team_.exchange(complete ? "complete" : "").front().empty();
}

/// With --json, what a complete output holds.
void StatsRun::print_complete() const {
  if (o_.json && team_.is_first()) print_json(read_stats_json(o_.out), true);
}

/// Every process's, with the jobs whose records are there taken out.
void StatsRun::open_journal(StatsJobs& s, const OrderedJson& identity, const std::string& capture,
                            const OutputFileOptions& options) {
  found_.open(o_.out, record_list_header("stats", identity), capture, options, console_);
  begun_ = true;
  if (!found_.there().empty()) {
    console_.say(resuming_text({std::ssize(found_.there()), total_, "heads", o_.out + ".part"}));
  }
  drop_jobs(s, found_.there());
}

/// Adds the records of the jobs that this process takes. Throws Error(interrupted) when it was
/// stopped.
void StatsRun::measure(const StatsJobs& s, const ClassThresholds& thresholds,
                       const TileBackend& backend, MemoryBudget& budget,
                       const std::stop_token& stop) {
  if (s.jobs.empty()) return;
  HeadRecordSink sink(s.jobs, {o_.arrays(), thresholds, s.tokens}, [&](HeadRecord record) {
    found_.add(head_json(record));
    records_.push_back(std::move(record));
  });
  const ReductionPlan plan = plan_stats(o_, s, backend, budget);
  const bool complete = run_reductions(
      {console_, "stats", backend, budget, stop, team_.is_alone() ? nullptr : &team_}, s.jobs, plan,
      sink);
  found_.flush();
  if (!complete) throw interrupted_error(kNothingKept);
}

/// What the run found, to its file and to standard output.
void StatsRun::write(const OrderedJson& identity, const ExportSpec& spec) {
  OrderedJson about{{"capture", spec.capture_name}};
  about.update(identity);
  if (spec.share) about["part"] = OrderedJson::parse(export_part_json(spec));
  sort_records(records_, find_head_field(o_.sort));
  const bool in_file = found_.is_open();
  if (in_file) {
    const std::string extension = extension_of(o_);
    const bool written = found_.finish([&](const std::filesystem::path& path) {
      if (extension == ".json") write_stats_json(about, records_, path);
      if (extension == ".csv") write_stats_csv(records_, path);
      if (extension == ".h5") write_stats_hdf5(spec, records_, path);
    });
    if (written) console_.say(fmt::format("wrote {} ({} heads)", o_.out, records_.size()));
    if (!written) say_complete(console_, o_.out);
  }
  print_result(
      o_.json, in_file, [&] { return stats_json(about, records_); },
      [&] { print_stats_table(records_); });
}

int StatsRun::run() {
  const std::optional<PlanShare> share = chosen_share(o_.shard, console_);
  o_.out = name_of_share(o_.out, share);
  check_stats_options(o_);
  const ClassThresholds thresholds = parse_thresholds(o_);
  const RunOptions how = o_.run = share_of_host(o_.run, team_);
  const Capture capture = open_capture(o_.capture, how, console_);
  StatsJobs s = make_stats_jobs(o_, capture);
  const auto backend = make_team_backend(how, team_, console_);
  MemoryBudget budget(memory_beside(capture, how));
  if (team_.is_first()) {
    check_capture(capture, o_.capture, *backend, budget.room(), console_);
    tell_unknown_state(s.calls, console_);
  }
  const OrderedJson options =
      content_options(o_, thresholds, recorded_backend(*backend, s.calls), score_text(s.calls));
  ExportSpec spec = stats_spec(s, capture, options);
  if (share) {
    spec.share = share_selection(s.calls, *share, ShareUnit::heads,
                                 plan_text("stats", options, spec.capture_name));
    keep_share(s, *spec.share);
  }
  agree(s, capture, options);
  total_ = std::ssize(s.jobs);
  name_jobs(s);
  const std::vector<std::filesystem::path> inputs = guarded_inputs(capture);
  const OutputFileOptions file_options{.force = o_.force,
                                       .resumable = true,
                                       .resume = o_.resume,
                                       .inputs = inputs,
                                       .sources = capture.inputs()};
  constexpr int64_t kResultBytes = 10 << 10;
  const MemoryReservation results =
      reserve_results(budget, results_held(team_, total_), kResultBytes);
  if (team_.is_first()) say_plan(s, file_options, *backend, budget);
  if (o_.dry_run) {
    team_.exchange("");
    return kExitOk;
  }
  const std::span<const ReductionJob> looked_at = own_items(team_, s.jobs);
  const CheckedRun run(console_, looked_at, *backend);
  if (!looked_at.empty()) run.check_logits(looked_at, *backend, budget);
  if (share) {
    spec.find_hashes(capture, false, run.stop());
  } else {
    spec.set_hashes(hash_together(team_, capture, s.calls, false, run.stop()));
  }
  const OrderedJson identity = identity_of(spec, options);
  const bool complete = is_there(identity);
  if (complete && (!o_.json || extension_of(o_) == ".json")) {
    print_complete();
    team_.exchange("");
    return kExitOk;
  }
  // An .h5 has its heads' numbers, and not all that the JSON says.
  if (complete) console_.say("its heads are measured again for --json");
  if (!o_.out.empty() && !complete) open_journal(s, identity, spec.capture_name, file_options);
  measure(s, thresholds, *backend, budget, run.stop());
  capture.require_unchanged();
  found_.collect();
  if (team_.is_first()) write(identity, spec);
  // Nobody ends before all is written.
  team_.exchange("");
  // While signals are still heeded.
  found_.close();
  return kExitOk;
}

int run_stats(const StatsOptions& o) {
  const Console console(o.quiet);
  return run_shared(o.shard, o.alone, o.out, console, [&](Team& team, const Console& words) {
    return std::make_unique<StatsRun>(o, team, words);
  });
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
