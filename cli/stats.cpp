#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/capture_options.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/stats_record.h"
#include "core/error.h"
#include "core/reduction_stream.h"
#include "core/selection.h"
#include "core/value_check.h"
#include "io/stats_files.h"
#include "io/stats_journal.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

/// Rows on which keys are counted unless --exact asks for all of them.
constexpr int64_t kShareRows = 256;

struct StatsOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  std::string out, sort;
  std::vector<std::string> extras, thresholds;
  int64_t sample = 0;
  int64_t band = -1;
  bool exact = false, resume = false, force = false, dry_run = false, json = false, quiet = false;
};

/// The selection as jobs, and what they borrow.
struct StatsJobs {
  std::vector<SelectedCall> calls;
  std::vector<std::vector<int64_t>> rows, share_rows;  ///< of each call
  std::vector<ReductionJob> jobs;
  std::vector<const CallEntry*> call_of_job;
};

bool wants(const StatsOptions& o, std::string_view name) {
  return std::find(o.extras.begin(), o.extras.end(), name) != o.extras.end();
}

void check_extras(const StatsOptions& o) {
  std::vector<std::string> names;
  for (const StatsArray& array : stats_arrays()) names.push_back(array.name);
  for (const std::string& extra : o.extras) {
    if (std::find(names.begin(), names.end(), extra) != names.end()) continue;
    const std::string nearest = nearest_word(extra, names);
    throw usage_error(fmt::format("--with {}: there is no such array{} (there are {})", extra,
                                  nearest.empty() ? "" : "; did you mean " + nearest + "?",
                                  fmt::join(names, ", ")));
  }
  if (!o.extras.empty() && o.out.empty() && !o.json) {
    throw usage_error("--with: arrays are written to a .json or .h5; give -o FILE or --json");
  }
}

ClassThresholds parse_thresholds(const StatsOptions& o) {
  ClassThresholds thresholds;
  const std::map<std::string, double*> known{{"sink", &thresholds.sink},
                                             {"text", &thresholds.text},
                                             {"temporal", &thresholds.temporal},
                                             {"spatial", &thresholds.spatial},
                                             {"local", &thresholds.local}};
  for (const std::string& text : o.thresholds) {
    const size_t equals = text.find('=');
    const auto found = known.find(text.substr(0, equals));
    const char* begin = text.c_str() + std::min(equals, text.size() - 1) + 1;
    double value = 0;
    const auto [end, error] = std::from_chars(begin, text.c_str() + text.size(), value);
    if (equals == std::string::npos || found == known.end() || error != std::errc() ||
        end != text.c_str() + text.size() || !(value >= 0 && value <= 1)) {
      throw usage_error(fmt::format(
          "--threshold {}: expected NAME=X with sink, text, temporal, spatial or local and a "
          "number from 0 to 1",
          text));
    }
    *found->second = value;
  }
  return thresholds;
}

StatsJobs make_jobs(const StatsOptions& o, const Capture& capture) {
  StatsJobs s;
  s.calls = capture.select(parse_selection(o.selection));
  s.rows.reserve(s.calls.size());
  s.share_rows.reserve(s.calls.size());
  for (const SelectedCall& selected : s.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    const int64_t rows = problem.num_queries();
    const bool sampled = o.sample > 0 && o.sample < rows;
    s.rows.push_back(sampled ? spread_rows(rows, o.sample) : std::vector<int64_t>());
    const int64_t taken = sampled ? o.sample : rows;
    std::vector<int64_t> shares = spread_rows(taken, o.exact ? taken : kShareRows);
    if (sampled) {
      for (int64_t& row : shares) row = s.rows.back()[static_cast<size_t>(row)];
    }
    s.share_rows.push_back(std::move(shares));
    ReductionRequest request = metrics_request(problem, s.share_rows.back(),
                                               o.band < 0 ? std::nullopt : std::optional(o.band));
    request.max_keys = wants(o, "max_key_rows");
    request.diagonals = wants(o, "diagonal_profile");
    request.offsets = wants(o, "offset_kernel");
    if (request.offsets && !request.places) {
      throw usage_error("--with offset_kernel: queries and keys of " + problem.name() +
                        " are not the same tokens of a known grid; give --grid TxHxW");
    }
    for (int64_t b : selected.batch) {
      for (int64_t h : selected.heads) {
        s.jobs.push_back(
            {{&problem, b, h, {0, rows}, s.rows.back(), {0, problem.num_keys()}}, request});
        s.call_of_job.push_back(selected.call);
      }
    }
  }
  return s;
}

/// What decides the result beside the capture's content.
Json content_options(const StatsOptions& o, const ClassThresholds& thresholds,
                     const TileBackend& backend) {
  Json json{{"steps", o.selection.steps},     {"layers", o.selection.layers},
            {"heads", o.selection.heads},     {"batch", o.selection.batch},
            {"branch", o.selection.branches}, {"kind", o.selection.kinds},
            {"score", o.capture.score},       {"backend", backend.name()}};
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

/// A head's place among the records, whatever order they came in.
std::string record_key(const Json& record) {
  return fmt::format("{}/{}/{}/{}/{}/{}", record["step"].dump(), record["layer"].dump(),
                     record["branch"].dump(), record["kind"].dump(), record["batch"].dump(),
                     record["head"].dump());
}

/// Makes a record of every head and keeps it.
class RecordSink : public ReductionSink {
 public:
  RecordSink(std::span<const ReductionJob> jobs, std::span<const CallEntry* const> calls,
             const StatsOptions& options, const ClassThresholds& thresholds, StatsJournal* journal)
      : jobs_(jobs), calls_(calls), options_(options), thresholds_(thresholds), journal_(journal) {}

  /// Bytes of the rows' values that are held at a time, for `heads` heads.
  static int64_t bytes(const StatsOptions& o, std::span<const ReductionJob> jobs, int64_t heads) {
    int64_t rows = 0;
    for (const ReductionJob& job : jobs) rows = std::max(rows, job.task.num_rows());
    int64_t arrays = 0;
    for (const std::string& name : o.extras) arrays += name.ends_with("_rows") ? 1 : 0;
    return arrays * rows * heads * 8;
  }

  void panel(int64_t job, int64_t first, const PanelReduction& panel) override {
    const bool any = std::any_of(options_.extras.begin(), options_.extras.end(),
                                 [](const std::string& name) { return name.ends_with("_rows"); });
    if (!any) return;
    StatsRows* rows = nullptr;
    {
      const std::lock_guard lock(mutex_);
      rows = &rows_[job];
      const auto count = static_cast<size_t>(jobs_[static_cast<size_t>(job)].task.num_rows());
      const auto make = [&](const char* name, std::vector<double>& values) {
        if (wants(options_, name) && values.empty()) values.assign(count, kNone);
      };
      make("entropy_rows", rows->entropy);
      make("max_weight_rows", rows->max_weight);
      make("max_key_rows", rows->max_key);
      make("lse_rows", rows->lse);
    }
    for (int64_t i = 0; i < panel.num_rows(); ++i) {
      const RowReduction& row = panel.row(i);
      const auto at = static_cast<size_t>(first + i);
      if (row.masked) {
        if (!rows->max_key.empty()) rows->max_key[at] = -1;
        continue;
      }
      if (!rows->entropy.empty() && panel.request().entropy) rows->entropy[at] = row.entropy;
      if (!rows->max_weight.empty()) rows->max_weight[at] = row.max_weight;
      if (!rows->max_key.empty()) rows->max_key[at] = static_cast<double>(row.max_key);
      if (!rows->lse.empty() && row.norm.sum > 0) rows->lse[at] = row.norm.lse();
    }
  }

  void head(int64_t number, const HeadTotals& totals) override {
    const ReductionJob& job = jobs_[static_cast<size_t>(number)];
    const HeadMetrics metrics =
        head_metrics(totals, job.task, job.request, job.task.problem->num_queries(), thresholds_);
    StatsRows rows;
    {
      const std::lock_guard lock(mutex_);
      auto node = rows_.extract(number);
      if (!node.empty()) rows = std::move(node.mapped());
    }
    Json record = stats_record(*calls_[static_cast<size_t>(number)], job.task, metrics, totals,
                               job.request, options_.extras, rows);
    if (journal_ != nullptr) journal_->append(record);
    records.push_back(std::move(record));
  }

  std::vector<Json> records;

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::span<const ReductionJob> jobs_;
  const std::span<const CallEntry* const> calls_;
  const StatsOptions& options_;
  const ClassThresholds& thresholds_;
  StatsJournal* journal_;
  std::mutex mutex_;
  std::map<int64_t, StatsRows> rows_;
};

/// Takes the jobs out whose records are there.
void drop_known(StatsJobs& s, const std::vector<Json>& kept) {
  std::set<std::string> known;
  for (const Json& record : kept) known.insert(record_key(record));
  StatsJobs left;
  for (size_t i = 0; i < s.jobs.size(); ++i) {
    const CallId& id = s.call_of_job[i]->id;
    const HeadTask& task = s.jobs[i].task;
    const Json key{{"step", id.step},
                   {"layer", id.layer},
                   {"branch", branch_of(id, task.batch)},
                   {"kind", kind_name(id.kind)},
                   {"batch", task.batch},
                   {"head", task.head}};
    if (known.count(record_key(key)) != 0) continue;
    left.jobs.push_back(s.jobs[i]);
    left.call_of_job.push_back(s.call_of_job[i]);
  }
  s.jobs = std::move(left.jobs);
  s.call_of_job = std::move(left.call_of_job);
}

void sort_records(std::vector<Json>& records, const std::string& by) {
  const auto place = [](const Json& r) {
    return std::make_tuple(r["step"].get<int64_t>(), r["layer"].get<int64_t>(),
                           r["batch"].get<int64_t>(), r["kind"].get<std::string>(),
                           r["head"].get<int64_t>());
  };
  std::sort(records.begin(), records.end(),
            [&](const Json& a, const Json& b) { return place(a) < place(b); });
  if (by.empty()) return;
  // Undefined values last.
  const auto value = [&](const Json& r) {
    return r[by].is_number() ? r[by].get<double>() : -std::numeric_limits<double>::infinity();
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const Json& a, const Json& b) { return value(a) > value(b); });
}

void check_sort(const StatsOptions& o) {
  if (o.sort.empty()) return;
  std::vector<std::string> names{"masked_rows"};
  for (std::string_view name : metric_names()) names.emplace_back(name);
  if (std::find(names.begin(), names.end(), o.sort) != names.end()) return;
  const std::string nearest = nearest_word(o.sort, names);
  throw usage_error(fmt::format("--sort {}: there is no such number{} (there are {})", o.sort,
                                nearest.empty() ? "" : "; did you mean " + nearest + "?",
                                fmt::join(names, ", ")));
}

std::string extension_of(const StatsOptions& o) {
  const std::string extension = std::filesystem::path(o.out).extension().string();
  if (o.out.empty() || extension == ".json" || extension == ".csv" || extension == ".h5") {
    return extension;
  }
  throw usage_error(
      fmt::format("-o {}: the name must end in .json, .csv or .h5 (got \"{}\")", o.out, extension));
}

ExportSpec stats_spec(const StatsJobs& s, const Capture& capture, const Json& options,
                      const std::string& hash, const TileBackend& backend) {
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
  spec.backend = backend.name();
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
  const size_t done = kept + sink.records.size();
  throw Error(ErrorCode::interrupted,
              journal == nullptr || done == 0
                  ? std::string("interrupted: nothing was kept")
                  : fmt::format("interrupted: {} of {} heads are in {}; --resume goes on", done,
                                kept + s.jobs.size(), journal->part_path().string()));
}

void write_output(const StatsOptions& o, const std::string& extension, StatsJournal& journal,
                  const Json& about, const ExportSpec& spec, const std::vector<Json>& records) {
  journal.finish([&](const std::filesystem::path& path) {
    if (extension == ".json") write_stats_json(about, records, path);
    if (extension == ".csv") write_stats_csv(records, path);
    if (extension == ".h5") write_stats_hdf5(spec, records, path);
  });
  (void)o;
}

int run_stats(const StatsOptions& o) {
  const Console console(o.quiet);
  check_extras(o);
  check_sort(o);
  const ClassThresholds thresholds = parse_thresholds(o);
  const std::string extension = extension_of(o);
  if (extension == ".csv" && !o.extras.empty()) {
    throw usage_error("--with: a .csv holds no arrays; write a .json or .h5");
  }
  if (o.resume && o.out.empty()) throw usage_error("--resume belongs to -o FILE");
  const Capture capture = open_capture(o.capture, console);
  StatsJobs s = make_jobs(o, capture);
  const auto backend = make_backend(parse_backend(o.run.backend), {o.run.threads});
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

  const InterruptWatch interrupts;
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : s.jobs) tasks.push_back(job.task);
  check_values(tasks, interrupts.token());
  const std::string hash = capture.content_hash(s.calls, false, interrupts.token());
  const Json options = content_options(o, thresholds, *backend);
  std::optional<StatsJournal> journal;
  std::vector<Json> kept;
  const ExportSpec spec = stats_spec(s, capture, options, hash, *backend);
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
  std::vector<Json> records = std::move(sink.records);
  records.insert(records.end(), kept.begin(), kept.end());
  sort_records(records, o.sort);
  const Json about{{"capture", capture.path().filename().string()},
                   {"capture_hash", hash},
                   {"options", options}};
  if (journal) {
    write_output(o, extension, *journal, about, spec, records);
    console.say(fmt::format("wrote {} ({} heads)", o.out, records.size()));
  }
  if (o.json) {
    Json json{{"format", "attnscope-stats/1"}};
    json.update(about);
    json["heads"] = records;
    print_json(json, true);
  } else if (o.out.empty()) {
    print_stats_table(records);
  }
  return kExitOk;
}

}  // namespace

Command add_stats_command(CLI::App& app) {
  auto options = std::make_shared<StatsOptions>();
  StatsOptions& o = *options;
  CommandParser command(
      app, "stats", "a line of numbers a head: entropy, text, frames, sinks, and what kind it is");
  add_capture_options(command, o.capture);
  command.add_option("-o", o.out, "write .json, .csv or .h5; without it a table is printed")
      .type_name("FILE");
  command
      .add_option("--sample", o.sample,
                  "estimate from N evenly spread rows of each head, with standard errors")
      .in_range(1, int64_t{1} << 31)
      .type_name("N");
  command.add_flag("--exact", o.exact,
                   "count keys (keys_for_50, ...) on all rows, not on 256 spread ones");
  command
      .add_option("--band", o.band,
                  "reach in y and x of temporal_score (default: so that all frames within it\n"
                  "hold as many keys as one frame)")
      .in_range(0, int64_t{1} << 31)
      .type_name("N");
  command
      .add_option("--threshold", o.thresholds,
                  "from where a head belongs to a class: sink=0.10 text=0.25 temporal=0.15\n"
                  "spatial=0.40 local=0.40 (repeatable)")
      .type_name("NAME=X")
      .one_value_each();
  command
      .add_option("--with", o.extras,
                  "arrays as well: frame_frame, column_mass, diagonal_profile, offset_kernel,\n"
                  "entropy_rows, max_weight_rows, max_key_rows, lse_rows")
      .type_name("LIST")
      .delimiter(',')
      .one_value_each();
  command.add_option("--sort", o.sort, "heads by this number, the largest first").type_name("NAME");
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  command.add_flag("--resume", o.resume, "go on with what an interrupted run left of FILE");
  command.add_flag("--force", o.force, "replace FILE if it exists");
  command.add_flag("--dry-run", o.dry_run, "print what it would take; write nothing");
  command.add_flag("--json", o.json, "print JSON");
  command.add_flag("--quiet", o.quiet, "no narration, no progress");
  command.footer(
      "Examples:\n"
      "  attnscope stats dump/ --layers 12 --sort same_frame_mass\n"
      "  attnscope stats dump/ --sample 256 --json\n"
      "  attnscope stats dump/ -o heads.h5 --with frame_frame,column_mass");
  return {command, [options] { return run_stats(*options); }};
}

}  // namespace attnscope
