#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common/cache_option.h"
#include "cli/common/capture_check.h"
#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/output_options.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/common/shard_option.h"
#include "cli/common/team_run.h"
#include "cli/common/team_steps.h"
#include "cli/common/unknown_state.h"
#include "cli/query/query_compute.h"
#include "cli/query/query_evictions.h"
#include "cli/query/query_export.h"
#include "cli/query/query_output.h"
#include "cli/query/query_summary.h"
#include "cli/query/query_tasks.h"
#include "cluster/team.h"
#include "core/base/error.h"
#include "core/base/index_range.h"
#include "core/base/memory_budget.h"
#include "core/base/plan_share.h"
#include "core/base/selection.h"
#include "core/products/query_mean.h"
#include "core/products/row_collector.h"
#include "core/stream/head_work.h"
#include "io/capture/capture_guard.h"
#include "io/export/format/export_manifest.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/results/volume_hdf5.h"
#include "io/results/volume_output.h"

namespace attnscope {
namespace {

constexpr const char* kAll = "all";

/// The sequence that the volumes of a call show.
const TokenGrid& shown_of(const QueryRequest& request, const SelectedCall& selected) {
  const AttentionProblem& problem = *selected.call->problem;
  return request.reverse ? problem.query_tokens() : problem.key_tokens();
}

std::vector<std::string> names_with_grid(const TokenGrid& tokens) {
  std::vector<std::string> names;
  for (const TokenSegment& segment : tokens.segments()) {
    if (segment.is_raster()) names.push_back(segment.name);
  }
  return names;
}

std::string file_of(const std::string& out, const std::string& segment) {
  const std::filesystem::path path(out);
  return (path.parent_path() / (path.stem().string() + "-" + segment + path.extension().string()))
      .string();
}

/// Whether --segment all was given, and is no segment's name in the selected calls.
bool asks_all_segments(const QueryRequest& request, const Capture& capture) {
  if (request.segment != kAll) return false;
  const auto calls = capture.select(parse_selection(request.selection));
  return std::none_of(calls.begin(), calls.end(), [&](const SelectedCall& selected) {
    const auto& segments = shown_of(request, selected).segments();
    return std::any_of(segments.begin(), segments.end(),
                       [](const TokenSegment& segment) { return segment.name == kAll; });
  });
}

/// The request for each segment of the selected calls that has a grid, in the order of the token
/// map of the first, with a file of its own: film.png becomes film-NAME.png. Throws Error(usage)
/// where none has, the calls' segments differ, or there is no file to name.
std::vector<QueryRequest> each_segment(const QueryRequest& request, const Capture& capture) {
  if (request.out.empty() || request.json) {
    throw usage_error(
        "--segment all: writes a file for each segment: give -o FILE, without --json");
  }
  const auto calls = capture.select(parse_selection(request.selection));
  const auto names = names_with_grid(shown_of(request, calls.front()));
  if (names.empty()) {
    throw usage_error("--segment all: " + calls.front().call->problem->name() +
                      " has no token map with a grid in row-major order");
  }
  for (const SelectedCall& selected : calls) {
    if (names_with_grid(shown_of(request, selected)) == names) continue;
    throw usage_error(fmt::format(
        "--segment all: {} has other segments than {}: select calls of one kind with --kind",
        selected.call->problem->name(), calls.front().call->problem->name()));
  }
  std::vector<QueryRequest> requests;
  for (const std::string& name : names) {
    requests.push_back(request);
    requests.back().segment = name;
    requests.back().out = file_of(request.out, name);
  }
  return requests;
}

/// What of a query --shard does not cut.
void check_shard(const QueryRequest& o, const MeanAxes& mean) {
  if (is_export_file(o.capture.capture)) {
    refuse_shard(o.shard, "a query of an export reads a few rows, and is not cut");
  }
  if (mean.any()) refuse_shard(o.shard, "--mean is of heads that several parts have");
  if (!o.out.empty() && std::filesystem::path(o.out).extension() != ".h5") {
    refuse_shard(o.shard, "-o " + o.out +
                              ": only an .h5 says which part it is; attnscope merge makes "
                              "an .npy or .csv of them");
  }
}

// A query whose heads several processes share: one after the other has a run of them.

std::vector<IndexRange> runs_of_heads(const Team& team, const QueryTasks& q) {
  std::vector<int64_t> work;
  for (const HeadTask& task : q.tasks) {
    work.push_back(head_work(*task.problem, task.batch, task.head));
  }
  return share_out(work, team.size());
}

int64_t tokens_of(const QueryTasks& q, IndexRange heads) {
  int64_t tokens = 0;
  for (int64_t i = heads.begin; i < heads.end; ++i) {
    tokens += q.shown(static_cast<size_t>(i)).tokens();
  }
  return tokens;
}

template <typename T>
void append(std::string& bytes, const std::vector<T>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Takes `count` numbers from what is left.
template <typename T>
std::vector<T> take(std::string_view& bytes, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  const size_t size = values.size() * sizeof(T);
  if (bytes.size() < size) throw Error(ErrorCode::file, "a process has other values than asked");
  std::memcpy(values.data(), bytes.data(), size);
  bytes.remove_prefix(size);
  return values;
}

/// The heads whose values this process finds; none of some where there are fewer than processes.
/// The runs have about equal work, and follow each other in the order of processes.
IndexRange own_heads(const Team& team, const QueryTasks& q) {
  return runs_of_heads(team, q)[static_cast<size_t>(team.rank())];
}

/// The tasks of these heads. Borrows from `q`.
QueryTasks tasks_of(const QueryTasks& q, IndexRange heads) {
  QueryTasks own;
  own.calls = q.calls;
  own.chosen = q.chosen;
  own.seen_keys = q.seen_keys;
  own.reverse = q.reverse;
  for (int64_t i = heads.begin; i < heads.end; ++i) {
    const auto at = static_cast<size_t>(i);
    own.tasks.push_back(q.tasks[at]);
    own.call_of_task.push_back(q.call_of_task[at]);
    own.chosen_of_task.push_back(q.chosen_of_task[at]);
    if (!q.seen.empty()) own.seen.push_back(q.seen[at]);
  }
  return own;
}

/// Gives the values of all processes to the first one, in the order of heads; the others keep none.
/// An exchange. Throws Error(resource) where the first one's budget does not have them.
void collect_values(Team& team, const QueryTasks& q, MemoryBudget& budget, QueryValues& computed) {
  if (team.is_alone()) return;
  const std::vector<IndexRange> runs = runs_of_heads(team, q);
  // What the others send, and the values that are made of it.
  const int64_t others =
      tokens_of(q, {0, std::ssize(q.tasks)}) - tokens_of(q, runs[static_cast<size_t>(team.rank())]);
  if (team.is_first()) {
    computed.others = budget.reserve(2 * others * 4, "the other processes' values");
  }
  std::string mine;
  if (!team.is_first()) {
    for (const std::vector<float>& values : computed.values) append(mine, values);
    append(mine, computed.lse);
    computed = {};
  }
  std::vector<std::string> all = team.collect(mine);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    std::string_view left = all[rank];
    for (int64_t i = runs[rank].begin; i < runs[rank].end; ++i) {
      computed.values.push_back(take<float>(left, q.shown(static_cast<size_t>(i)).tokens()));
    }
    const auto lse = take<double>(left, runs[rank].size());
    computed.lse.insert(computed.lse.end(), lse.begin(), lse.end());
    all[rank] = {};
  }
}

/// The parts of a query's values: described, computed by all processes, written by the first one.
class QueryCommand {
 public:
  QueryCommand(const QueryRequest& o, Team& team, const Console& console,
               std::optional<PlanShare> share)
      : o_(o), team_(team), console_(console), share_(share), mean_(parse_mean_axes(o.mean)) {}

  /// `first`: of several volumes of the same tasks.
  void run(const Capture& capture, bool first) {
    const SoftmaxDomain domain = parse_domain(o_.domain);
    QueryTasks q = make_query_tasks(o_, capture);
    check_domain(domain, q);
    check_weighting(o_, q);
    QueryVolumes volumes = describe_volumes(o_, capture, q);
    volumes.mean = mean_.text();
    const TokenGrid shown = q.shown(0);
    std::optional<VolumeFormat> format;
    if (team_.is_first()) {
      format = choose_format(o_, {shown, q.reverse, guarded_inputs(capture)},
                             count_averages(mean_, volumes));
    }
    const auto backend = make_team_backend(o_.run, team_, console_);
    agree(capture, q, *backend);
    if (first) tell_of_tasks(q);  // before a share may leave nothing of them
    std::optional<VolumePart> part;
    if (share_) {
      const SelectionShare own =
          share_selection(q.calls, *share_, ShareUnit::heads,
                          plan_text("query", query_options_json(o_), volumes.capture));
      part = VolumePart{own.part, recorded_backend(*backend, q.calls)};
      keep_share(own, q, volumes);
    }
    const MemoryRoom memory = memory_beside(capture, o_.run);
    if (team_.is_first()) check_capture(capture, o_.capture, *backend, memory, console_);
    MemoryBudget budget(memory);
    constexpr int64_t kResultBytes = 6 << 10, kTopKeyBytes = 512;
    const int64_t top = std::min(o_.top, q.tasks.empty() ? 0 : q.tasks.front().problem->num_keys());
    const MemoryReservation results = reserve_results(
        budget, results_held(team_, std::ssize(q.tasks)), kResultBytes + top * kTopKeyBytes);
    if (!o_.reverse && !o_.cache.empty()) {
      console_.say("note: only --reverse keeps row sums; --cache changes nothing here");
    }
    auto computed = compute_together(capture, q, *backend, budget);
    if (!computed) return;
    if (mean_.any()) average_volumes(mean_, volumes, computed->values, budget);
    OrderedJson heads = set_all_values(q, shown, *computed, format.has_value(), volumes);
    if (format) write(*format, part, volumes);
    print_summaries(o_, volumes, heads);
  }

 private:
  /// What a user may have meant otherwise.
  void tell_of_tasks(const QueryTasks& q) const {
    tell_unknown_state(q.calls, console_);
    const AttentionProblem& problem = *q.tasks.front().problem;
    tell_mixed_tokens(q.tokens_of(0).tokens,
                      q.reverse ? problem.key_tokens() : problem.query_tokens(), console_);
  }

  void agree(const Capture& capture, const QueryTasks& q, const TileBackend& backend) {
    agree_on_run(team_, capture, q.calls,
                 {{"options", query_options_json(o_)},
                  {"heads", q.tasks.size()},
                  {"backend", recorded_backend(backend, q.calls)},
                  {"--mean", mean_.text()},
                  {"-o", o_.out},
                  {"--dry-run", o_.dry_run}});
  }

  /// The values of all heads on the first process; nothing on the others, and of a dry run.
  std::optional<QueryValues> compute_together(const Capture& capture, const QueryTasks& q,
                                              const TileBackend& backend, MemoryBudget& budget) {
    LseCache cache(cache_folders(o_.cache, capture), capture.inputs());
    if (o_.dry_run) {
      if (team_.is_first()) compute({o_, q, backend, budget, console_, &team_}, cache);
      return std::nullopt;
    }
    const QueryTasks own = tasks_of(q, own_heads(team_, q));
    auto computed = compute({o_, own, backend, budget, console_, &team_}, cache);
    capture.require_unchanged();
    collect_values(team_, q, budget, *computed);
    return team_.is_first() ? std::move(computed) : std::nullopt;
  }

  static std::optional<QueryValues> compute(const QueryRun& run, LseCache& cache) {
    // A part may have no head.
    if (run.tasks.tasks.empty()) {
      if (run.request.dry_run) print_plan({.command = "query"}, run.request.json);
      return run.request.dry_run ? std::nullopt : std::optional(QueryValues{});
    }
    return run.tasks.reverse ? compute_columns(run, cache) : compute_rows(run);
  }

  /// Gives the volumes their values where they are written; the summaries where they are printed.
  OrderedJson set_all_values(const QueryTasks& q, const TokenGrid& shown, QueryValues& computed,
                             bool written, QueryVolumes& volumes) const {
    OrderedJson heads = OrderedJson::array();
    for (size_t i = 0; i < volumes.volumes.size(); ++i) {
      QueryVolume& volume = volumes.volumes[i];
      std::vector<float>& values = computed.values[i];
      if (!written || o_.json) {
        const double lse = mean_.any() ? std::nan("") : computed.lse[i];
        heads.push_back(summarise_values(volumes, volume, shown, values, lse, o_.top));
        if (!o_.queries.text_tokens.empty()) heads.back()["text_tokens"] = volume.chosen_text;
      }
      if (written) set_values(volume, shown, std::move(values));
    }
    if (written) mark_evicted(q, mean_.any(), volumes);
    return heads;
  }

  void write(VolumeFormat format, const std::optional<VolumePart>& part,
             const QueryVolumes& volumes) const {
    if (part) {
      write_volume_part(volumes, *part, o_.out, o_.force);
    } else {
      write_volumes(format, volumes, o_.out, o_.force);
    }
    console_.say(fmt::format("wrote {} ({} {}{}, {})", o_.out, volumes.volumes.size(),
                             mean_.any() ? "volume" : "head",
                             volumes.volumes.size() == 1 ? "" : "s", describe_output(volumes)));
  }

  const QueryRequest& o_;
  Team& team_;
  const Console& console_;
  const std::optional<PlanShare> share_;
  const MeanAxes mean_;
};

/// The run, as one of the processes that do it together, or alone.
class QueryWork final : public TeamWork {
 public:
  QueryWork(const QueryRequest& asked, Team& team, const Console& console)
      : o_(asked), team_(team), console_(console) {}

  int run() override;
  bool begun() const override { return false; }
  std::string left(int64_t) const override { return std::string(kNothingWritten); }
  void give_up() override {}

 private:
  int of_export();

  QueryRequest o_;
  Team& team_;
  const Console& console_;
};

/// A few rows are read by one.
int QueryWork::of_export() {
  const int code = team_.is_first() ? query_export(o_, console_) : kExitOk;
  team_.exchange("");
  return code;
}

int QueryWork::run() {
  const std::optional<PlanShare> share = chosen_share(o_.shard, console_);
  o_.out = name_of_share(o_.out, share);
  parse_domain(o_.domain);
  const MeanAxes mean = parse_mean_axes(o_.mean);
  if (!o_.shard.empty()) check_shard(o_, mean);
  if (is_export_file(o_.capture.capture)) return of_export();
  o_.run = share_of_host(o_.run, team_);
  const Capture capture = open_capture(o_.capture, o_.run, console_);
  std::vector<QueryRequest> requests{o_};
  if (asks_all_segments(o_, capture)) {
    requests = each_segment(o_, capture);
    // None is written where one of them could not be.
    for (const QueryRequest& each : requests) {
      if (team_.is_first()) OutputFile::check_target(each.out, {.force = o_.force});
    }
  }
  for (const QueryRequest& each : requests) {
    QueryCommand(each, team_, console_, share).run(capture, &each == &requests.front());
  }
  // Nobody ends before all is written.
  team_.exchange("");
  return kExitOk;
}

int run_query(const QueryRequest& o) {
  const Console console(o.quiet);
  return run_shared(o.shard, o.alone, o.out, console, [&](Team& team, const Console& words) {
    return std::make_unique<QueryWork>(o, team, words);
  });
}

}  // namespace

Command add_query_command(CLI::App& app) {
  auto options = std::make_shared<QueryRequest>();
  QueryRequest& o = *options;
  CommandParser command(app, "query",
                        "one token's attention over the video, as a T x H x W volume");
  add_capture_options(command, o.capture);
  command
      .add_option(
          "-o", o.out,
          "write .npy [n,T,H,W], .h5, .csv, a .png filmstrip or a .gif that plays it; without it,\n"
          "a summary is printed")
      .type_name("FILE");
  add_query_options(command, o.queries, false);
  add_text_token_option(command, o.queries);
  command
      .add_option(
          "--domain", o.domain,
          "over which keys each row is renormalised: all (as it is), video, text, or frame\n"
          "(within each frame); keys outside the domain are 0")
      .type_name("NAME");
  command
      .add_option(
          "--segment", o.segment,
          "show this segment of a capture's token map instead of its video; all: each that\n"
          "has a grid, in a file of its own (film.png: film-NAME.png)")
      .type_name("NAME");
  command.add_flag("--reverse", o.reverse,
                   "who attends to the chosen tokens: they are keys, the volume is of queries");
  command
      .add_option("--weighting", o.weighting,
                  "none, or value: weights times the L2 norm of the key's value row")
      .type_name("NAME");
  command
      .add_option("--mean", o.mean,
                  "average the volumes over heads, layers, steps, or all three (all); batch\n"
                  "items stay apart (repeatable)")
      .type_name("AXES")
      .delimiter(',')
      .one_value_each();
  command.add_option("--top", o.top, "how many of the largest keys the summary lists")
      .in_range(0, 1000)
      .type_name("N");
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_shard_option(command, o.shard);
  add_alone_option(command, o.alone);
  add_cache_option(command, o.cache);
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compute nothing",
                      .json = "print the summary as JSON"});
  command.footer(
      "Examples:\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2 --heads 0 -o film.png\n"
      "  attnscope query dump/ --query 3,6:10,5:9 --domain video -o volume.npy\n"
      "  attnscope query dump/ --text-token dog --layers 2 -o dog.png\n"
      "  attnscope query dump/ --text-token dog --reverse --mean heads -o dog.npy\n"
      "  attnscope query rows.h5 --query 3,8,7          # an export of weights or rows");
  return {command, [options] { return run_query(*options); }};
}

}  // namespace attnscope
