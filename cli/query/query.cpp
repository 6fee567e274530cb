#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common/cache_option.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/output_options.h"
#include "cli/common/picture_options.h"
#include "cli/common/pixel_query.h"
#include "cli/query/query_compute.h"
#include "cli/query/query_evictions.h"
#include "cli/query/query_export.h"
#include "cli/query/query_output.h"
#include "cli/query/query_summary.h"
#include "cli/query/query_tasks.h"
#include "cli/run/head_run.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/shard_option.h"
#include "cli/run/team_steps.h"
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

/// True where --segment all was given and no segment of the selected calls has that name.
bool asks_all_segments(const QueryRequest& request, const std::vector<SelectedCall>& calls) {
  if (request.segment != kAll) return false;
  return std::none_of(calls.begin(), calls.end(), [&](const SelectedCall& selected) {
    const auto& segments = shown_of(request, selected).segments();
    return std::any_of(segments.begin(), segments.end(),
                       [](const TokenSegment& segment) { return segment.name == kAll; });
  });
}

/// The request for each segment of the selected calls that has a grid, in the order of the token
/// map of the first, with a file of its own: film.png becomes film-NAME.png. Throws Error(usage)
/// where none has, the calls' segments differ, or there is no file to name.
std::vector<QueryRequest> each_segment(const QueryRequest& request,
                                       const std::vector<SelectedCall>& calls) {
  if (request.out.empty() || request.json) {
    throw usage_error(
        "--segment all: writes a file for each segment: give -o FILE, without --json");
  }
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

/// Throws Error(usage) where --shard cannot cut the query: of an export, with --mean, not into .h5.
void check_shard(const QueryRequest& o, const MeanAxes& mean) {
  if (is_export_file(o.capture.capture)) {
    refuse_shard(o.shard, "a query of an export reads a few rows, and is not cut");
  }
  if (mean.any()) refuse_shard(o.shard, "--mean is of heads that several parts have");
  if (!o.sort.empty()) refuse_shard(o.shard, "--sort is of all heads");
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
  // Twice the other processes' values: the bytes that they send, and the float32 made of them.
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

/// The volumes of one segment: which tokens of the selected heads, and what is said of them.
struct SegmentQuery {
  SegmentQuery(const QueryRequest& request, const Capture& capture, const MeanAxes& mean,
               const std::vector<SelectedCall>& calls)
      : o(request), q(make_query_tasks(o, calls)) {
    check_domain(parse_domain(o.domain), q);
    check_weighting(o, q);
    volumes = describe_volumes(o, capture, q);
    volumes.mean = mean.text();
    shown = q.shown(0);
  }

  QueryRequest o;
  QueryTasks q;
  QueryVolumes volumes;
  TokenGrid shown;
  std::optional<VolumeOutput> output{};  ///< of the first process, where there is -o
  std::optional<VolumePart> part{};
};

class QueryWork final : public HeadRun {
 public:
  QueryWork(QueryRequest& asked, Team& team, const Console& console)
      : HeadRun(asked, team, console), o_(asked) {}

 private:
  void check_options() override;
  bool opens_capture() const override { return !is_export_; }
  std::vector<SelectedCall> choose() override;
  int work() override;
  void run(SegmentQuery& t);
  void keep_own_share(SegmentQuery& t);
  std::optional<QueryValues> compute_together(const SegmentQuery& t);
  static std::optional<QueryValues> compute(const QueryRun& run, LseCache& cache);
  void write(const SegmentQuery& t) const;

  QueryRequest& o_;
  MeanAxes mean_;
  bool is_export_ = false;
  std::vector<std::unique_ptr<SegmentQuery>> segments_;  ///< one, or one a segment
};

void QueryWork::check_options() {
  parse_domain(o_.domain);
  mean_ = parse_mean_axes(o_.mean);
  order_of(o_);
  if (!o_.shard.empty()) check_shard(o_, mean_);
  is_export_ = is_export_file(o_.capture.capture);
}

std::vector<SelectedCall> QueryWork::choose() {
  if (!o_.queries.any()) {
    throw usage_error("query needs --query T,Y,X, --at PIXEL, --index N or --text-token N|STRING");
  }
  std::vector<SelectedCall> calls = select();
  settle_pixels(pixel_sequences(calls, o_.reverse, o_.capture), o_.queries, console_);
  const std::vector<QueryRequest> requests =
      asks_all_segments(o_, calls) ? each_segment(o_, calls) : std::vector<QueryRequest>{o_};
  for (const QueryRequest& each : requests) {
    segments_.push_back(std::make_unique<SegmentQuery>(each, capture(), mean_, calls));
  }
  // None is written where one of them could not be.
  for (const auto& t : segments_) {
    if (!team_.is_first()) break;
    if (!t->o.out.empty()) mark_evicted(t->q, t->volumes);
    t->output = choose_output(t->o, {t->shown, t->q.reverse, guarded_inputs(capture())},
                              averages_of(mean_, t->volumes));
  }
  for (const auto& t : segments_) {
    if (!t->output || !t->output->page) continue;
    tell_large_film(t->o.out, *t->output->page, t->output->film, console_);
  }
  // Before a share may leave nothing of them.
  const QueryTasks& q = segments_.front()->q;
  const AttentionProblem& problem = *q.tasks.front().problem;
  check_order(o_, q.tokens_of(0).tokens.size());
  tell_mixed_tokens(q.tokens_of(0).tokens,
                    q.reverse ? problem.key_tokens() : problem.query_tokens(), console_);
  return calls;
}

void QueryWork::keep_own_share(SegmentQuery& t) {
  if (!share()) return;
  const SelectionShare own =
      share_selection(calls(), *share(), ShareUnit::heads,
                      plan_text("query", query_options_json(t.o), t.volumes.capture));
  t.part = VolumePart{own.part, recorded_backend(backend(), calls())};
  keep_share(own, t.q, t.volumes);
}

/// The values of all heads on the first process; nothing on the others, and of a dry run.
std::optional<QueryValues> QueryWork::compute_together(const SegmentQuery& t) {
  LseCache cache(cache_folders(o_.selection.cache, capture()), capture().inputs());
  if (o_.dry_run) {
    const auto picture = t.output ? t.output->planned() : std::nullopt;
    if (team_.is_first()) {
      compute({t.o, t.q, backend(), budget(), console_, picture, &team_}, cache);
    }
    return std::nullopt;
  }
  const QueryTasks own = tasks_of(t.q, own_heads(team_, t.q));
  auto computed = compute({t.o, own, backend(), budget(), console_, {}, &team_}, cache);
  capture().require_unchanged();
  collect_values(team_, t.q, budget(), *computed);
  return team_.is_first() ? std::move(computed) : std::nullopt;
}

std::optional<QueryValues> QueryWork::compute(const QueryRun& run, LseCache& cache) {
  // A part may have no head.
  if (run.tasks.tasks.empty()) {
    if (run.request.dry_run) print_plan({.command = "query"}, run.request.json);
    return run.request.dry_run ? std::nullopt : std::optional(QueryValues{});
  }
  return run.tasks.reverse ? compute_columns(run, cache) : compute_rows(run);
}

void QueryWork::write(const SegmentQuery& t) const {
  if (t.part) {
    write_volume_part(t.volumes, *t.part, t.o.out, o_.force);
  } else {
    write_volumes(t.output->format, t.volumes, t.output->film, t.o.out, o_.force);
  }
  say_written(t.o, t.volumes, console_);
}

void QueryWork::run(SegmentQuery& t) {
  agree({{"options", query_options_json(t.o)},
         {"heads", t.q.tasks.size()},
         {"backend", recorded_backend(backend(), calls())},
         {"--mean", mean_.text()}});
  keep_own_share(t);
  constexpr int64_t kResultBytes = 6 << 10, kTopKeyBytes = 512;
  const int64_t top =
      std::min(o_.top_count(), t.q.tasks.empty() ? 0 : t.q.tasks.front().problem->num_keys());
  const MemoryReservation results = reserve_results(
      budget(), results_held(team_, std::ssize(t.q.tasks)), kResultBytes + top * kTopKeyBytes);
  const auto picture = t.output ? t.output->reserve(budget()) : MemoryReservation();
  if (!o_.reverse && !o_.selection.cache.empty() && !o_.selection.holding) {
    console_.say("note: only --reverse and --where keep numbers; --cache changes nothing here");
  }
  auto computed = compute_together(t);
  if (!computed) return;
  if (mean_.any()) average_volumes(mean_, t.volumes, computed->values, budget());
  if (mean_.any()) computed->lse.clear();
  std::vector<QuerySummary> heads =
      set_all_values(t.o, t.shown, {std::move(computed->values), computed->lse}, t.volumes);
  if (t.output) write(t);
  print_summaries(t.o, t.volumes, std::move(heads));
}

int QueryWork::work() {
  if (is_export_) {
    // A few rows are read by one.
    return team_.is_first() ? query_export(o_, console_) : kExitOk;
  }
  for (auto& t : segments_) {
    run(*t);
    t.reset();
  }
  return kExitOk;
}

}  // namespace

Command add_query_command(CLI::App& app) {
  auto options = std::make_shared<QueryRequest>();
  QueryRequest& o = *options;
  CommandParser command(app, "query",
                        "one token's attention over the video, as a T x H x W volume");
  add_capture_options(command, o.capture);
  command
      .add_option("-o", o.out,
                  "write .npy [n,T,H,W], .h5, .csv, a filmstrip (.png, .svg, .pdf) or a film "
                  "(.gif, .mp4);\n"
                  "without it, a line a head is printed, of one head all that is told; -: as CSV")
      .type_name("FILE");
  take_standard_output(command, o);
  add_query_options(command, o.queries, false);
  add_text_token_option(command, o.queries);
  command
      .add_option(
          "--domain", o.domain,
          "over which keys each row is renormalised: all (as it is), video, text, or frame\n"
          "(within each frame); keys outside the domain are 0")
      .one_of(domain_names())
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
      .one_of(weighting_names())
      .type_name("NAME");
  command
      .add_option("--mean", o.mean,
                  "average the volumes over heads, layers, steps, or all three (all); batch\n"
                  "items stay apart (repeatable)")
      .one_of(mean_axis_names())
      .type_name("AXES")
      .delimiter(',')
      .one_value_each();
  command.add_flag("--track", o.track,
                   "where it is found again: the best match of each frame, its weight and the\n"
                   "centre of mass; in a .csv, outlined in films, in the summary");
  command
      .add_option("--top", o.top,
                  "how many of the largest keys are listed (5); of several heads below each line")
      .in_range(0, 1000)
      .type_name("N");
  command
      .add_option("--sort", o.sort,
                  "printed heads by weight, text_mass, video_mass (NAME_mass of --segment NAME),\n"
                  "frame_mass or lse, the largest first; NAME:asc: the smallest")
      .words(query_numbers("video"))
      .type_name("NAME");
  add_picture_options(command, o.page);
  add_head_run_options(command, o);
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compute nothing",
                      .json = "print the summary as JSON"});
  command.footer(
      "Examples:\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2 --sort weight\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2 --heads 0 -o film.png\n"
      "  attnscope query dump/ --query 3,8,7 --heads 0 --style paper --width 85mm -o film.pdf\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2 --track -o path.csv\n"
      "  attnscope query dump/ --query 3,6:10,5:9 --domain video -o volume.npy\n"
      "  attnscope query dump/ --text-token dog --layers 2 -o dog.png\n"
      "  attnscope query dump/ --text-token dog --reverse --mean heads -o dog.npy\n"
      "  attnscope query rows.h5 --query 3,8,7          # an export of weights or rows");
  return {command, [command, options] {
            check_picture_options(command, options->out, true);
            return run_heads<QueryWork>(*options);
          }};
}

}  // namespace attnscope
