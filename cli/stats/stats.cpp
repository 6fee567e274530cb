#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/left_out_names.h"
#include "cli/run/forecast.h"
#include "cli/run/recorded_run.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/stats_jobs.h"
#include "cli/run/stream_run.h"
#include "cli/stats/near_heads.h"
#include "cli/stats/stats_options.h"
#include "cli/stats/stats_tables.h"
#include "core/base/error.h"
#include "core/heads/head_record.h"
#include "core/heads/head_record_sink.h"
#include "core/reduce/reduction_stream.h"
#include "io/capture/capture_guard.h"
#include "io/export/format/export_part_json.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/metrics/stats_hdf5.h"
#include "io/results/head_json.h"
#include "io/results/head_tables.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

/// The options that decide the numbers, and which are kept, beside the capture's content.
OrderedJson content_options(const StatsOptions& o, const StatsChoice& choice,
                            const std::string& backend, const std::string& score) {
  OrderedJson json = selection_json(o.selection);
  json["score"] = score;
  json["backend"] = backend;
  json["sample"] = o.sample > 0 ? OrderedJson(o.sample) : OrderedJson();
  json["band"] = o.band >= 0 ? OrderedJson(o.band) : OrderedJson();
  json["exact"] = o.exact;
  add_left_out(json, o.capture);
  json["with"] = o.extras;
  json["thresholds"] = {{"sink", choice.thresholds.sink},
                        {"text", choice.thresholds.text},
                        {"temporal", choice.thresholds.temporal},
                        {"spatial", choice.thresholds.spatial},
                        {"local", choice.thresholds.local}};
  if (o.nearest) json["nearest"] = *o.nearest;
  if (o.top) json["top"] = {{"heads", *o.top}, {"sort", o.sort}};
  return json;
}

ExportSpec stats_spec(const std::vector<SelectedCall>& calls, const Capture& capture,
                      const OrderedJson& options) {
  ExportSpec spec;
  spec.product = ExportProduct::stats;
  spec.encoding = Encoding::f32;
  for (const SelectedCall& selected : calls) {
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

class StatsRun final : public RecordedRun {
 public:
  StatsRun(StatsOptions& options, Team& team, const Console& console)
      : RecordedRun("stats", options, team, console), o_(options) {}

 private:
  void check_options() override;
  std::vector<SelectedCall> choose() override;
  OrderedJson result_options() const override;
  void keep_share(const SelectionShare& share) override { attnscope::keep_share(s_, share); }
  std::vector<HeadTask> tasks() const override;
  int64_t record_bytes() const override { return (10 << 10) + o_.nearest.value_or(0) * 512; }
  RunPlan forecast() override;
  void check_memory() override {
    if (o_.nearest) check_near_memory(calls(), backend(), budget(), o_.run.threads);
  }
  void check_output(const OutputFileOptions& file) override {
    if (!o_.out.empty()) OutputFile::check_target(o_.out, file);
  }
  void start() override;
  void check(const CheckedRun& scope, std::span<const HeadTask> own) override;
  bool has_origin() const override { return !o_.out.empty() || o_.json; }
  bool reads_values() const override { return false; }
  std::vector<std::filesystem::path> inputs() const override { return guarded_inputs(capture()); }
  std::optional<int64_t> take(const OrderedJson& json) override;
  void measure(const std::stop_token& stop) override;
  StatsChoice choice_of_where() const override { return choice_; }
  void before_writing() override;
  void write_file(const std::filesystem::path& path) override;
  std::string written_text() const override { return fmt::format("{} heads", records_.size()); }
  std::vector<int64_t> measured_by_where() const;
  std::vector<int64_t> done_already();
  OrderedJson about() const;
  OrderedJson result() const override { return stats_json(about(), records_); }
  void print_table() const override {
    if (o_.csv) {
      fmt::print("{}", stats_csv(records_, o_.nearest.has_value()));
    } else {
      print_stats_tables(records_, o_);
    }
  }
  void find_nearest();
  OrderedJson told_options(OrderedJson options) const;
  ExportSpec spec() const;
  ReductionPlan plan() { return plan_stats(choice_, s_, backend(), budget(), o_.run.threads); }

  const StatsOptions& o_;
  StatsChoice choice_;
  StatsJobs s_;
  std::vector<HeadRecord> records_;
  std::stop_token stop_;
};

void StatsRun::check_options() {
  check_stats_options(o_);
  choice_ = o_.choice();
}

std::vector<SelectedCall> StatsRun::choose() {
  s_ = make_stats_jobs(choice_, select());
  return s_.calls;
}

OrderedJson StatsRun::result_options() const {
  return content_options(o_, choice_, recorded_backend(backend(), calls()), score_text(calls()));
}

std::vector<HeadTask> StatsRun::tasks() const {
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : s_.jobs) tasks.push_back(job.task);
  return tasks;
}

/// A record that another run or process found.
std::optional<int64_t> StatsRun::take(const OrderedJson& json) {
  std::optional<HeadRecord> record = parse_head_json(json);
  const auto place = record ? place_of(record->name) : std::nullopt;
  if (place) records_.push_back(std::move(*record));
  return place;
}

RunPlan StatsRun::forecast() {
  StatsJobs left = s_;
  drop_jobs(left, measured_by_where());
  RunPlan plan = plan_of("stats", 0, ReductionPlan(), budget());
  plan.seconds = 0;
  plan.how.clear();
  if (!left.jobs.empty()) {
    plan = forecast_run("stats", left.jobs,
                        plan_stats(choice_, left, backend(), budget(), o_.run.threads), backend(),
                        budget(), o_.dry_run);
  }
  plan.heads = std::ssize(s_.jobs);
  return plan;
}

void StatsRun::start() {
  const RunPlan f = planned();
  if (f.heads > 0 && std::ssize(measured_by_where()) == f.heads) {
    return console_.say(fmt::format("stats of {}, whose numbers --where has", heads_text(f.heads)));
  }
  console_.say(fmt::format("stats of {}{}: {}FLOP{}, memory {} (limit {})", heads_text(f.heads),
                           processes_text(f), format_count(f.flops), about_text(f),
                           format_bytes(f.memory_bytes), format_bytes(f.budget_bytes)));
}

void StatsRun::check(const CheckedRun& scope, std::span<const HeadTask> own) {
  if (!own.empty()) scope.check_logits(own, backend(), budget());
}

/// Places of the jobs whose records --where has or, of a dry run, would have; they lack arrays.
std::vector<int64_t> StatsRun::measured_by_where() const {
  std::vector<int64_t> places;
  if (!choice_.arrays.empty()) return places;
  for (const auto& [name, record] : where_records()) {
    if (const auto place = place_of(name)) places.push_back(*place);
  }
  for (const HeadName& name : where_supposed()) {
    if (const auto place = place_of(name)) places.push_back(*place);
  }
  std::sort(places.begin(), places.end());
  return places;
}

/// Places of the jobs that earlier runs did or that --where has measured, whose records the first
/// process adds.
std::vector<int64_t> StatsRun::done_already() {
  const std::vector<int64_t> measured = measured_by_where(), &there = found().there();
  std::vector<int64_t> both;
  std::set_union(there.begin(), there.end(), measured.begin(), measured.end(),
                 std::back_inserter(both));
  if (!team_.is_first() || measured.empty()) return both;
  for (const auto& [name, record] : where_records()) {
    const auto place = place_of(name);
    if (!place || std::binary_search(there.begin(), there.end(), *place)) continue;
    found().add(head_json(record));
    records_.push_back(record);
  }
  return both;
}

/// Adds the records of the jobs that this process takes. Throws Error(interrupted) when it was
/// stopped.
void StatsRun::measure(const std::stop_token& stop) {
  stop_ = stop;
  drop_jobs(s_, done_already());
  if (s_.jobs.empty()) return found().flush();
  const bool complete = measure_heads({console_, "stats", backend(), budget(), stop, shared_work()},
                                      choice_, s_, plan(), [&](HeadRecord record) {
                                        found().add(head_json(record));
                                        records_.push_back(std::move(record));
                                      });
  found().flush();
  if (!complete) throw interrupted_error(kNothingKept);
}

/// For --nearest, by the first process alone: few rows of each head are compared.
void StatsRun::find_nearest() {
  const StreamJob job{console_, "--nearest", backend(), budget(), stop_};
  const auto most = static_cast<size_t>(*o_.nearest);
  if (!find_near_heads(job, calls(), o_.run.threads, most, records_)) {
    throw interrupted_error(kNothingKept);
  }
  capture().require_unchanged();
  const auto alone = std::count_if(records_.begin(), records_.end(),
                                   [](const HeadRecord& record) { return record.nearest.empty(); });
  if (alone == 0) return;
  console_.say(fmt::format("--nearest: {} of {} have no other head to compare with", alone,
                           heads_text(std::ssize(records_))));
}

void StatsRun::before_writing() {
  if (o_.nearest) find_nearest();
  sort_records(records_, HeadOrder::parse(o_.sort));
  if (!o_.top || *o_.top >= std::ssize(records_)) return;
  records_.erase(records_.begin() + *o_.top, records_.end());
}

/// --curve prints numbers that are there without it: an output tells it, and no run is another for
/// it.
OrderedJson StatsRun::told_options(OrderedJson options) const {
  if (o_.curve) options["curve"] = true;
  return options;
}

/// The description of its run that an .h5 holds, as an export does.
ExportSpec StatsRun::spec() const {
  ExportSpec spec = stats_spec(calls(), capture(), told_options(options()));
  spec.share = part();
  spec.call_hashes = digests().of_calls;
  spec.capture_hash = digests().whole;
  return spec;
}

OrderedJson StatsRun::about() const {
  OrderedJson about = origin();
  if (about.contains("options")) about["options"] = told_options(about["options"]);
  if (part()) about["part"] = OrderedJson::parse(export_part_json(spec()));
  return about;
}

void StatsRun::write_file(const std::filesystem::path& path) {
  const std::string extension = extension_of(o_);
  if (extension == ".h5") return write_stats_hdf5(spec(), records_, path);
  write_stats_table(about(), records_, extension, path);
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
      "  attnscope stats dump/ --where 'class=temporal' --sort entropy:asc -o list.json\n"
      "  attnscope stats dump/ --sample 256 --json\n"
      "  attnscope stats dump/ -o heads.h5 --with frame_frame,column_mass\n"
      "  attnscope stats dump/ -o heads-{shard}.json --shard 0/4   # then: attnscope merge");
  return {command, [options] { return run_heads<StatsRun>(*options); }};
}

}  // namespace attnscope
