#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/capture_options.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/forecast.h"
#include "cli/interrupt.h"
#include "cli/query_options.h"
#include "cli/query_summary.h"
#include "cli/row_collector.h"
#include "core/error.h"
#include "core/streaming_engine.h"
#include "core/value_check.h"
#include "io/export_file.h"
#include "io/film_files.h"
#include "io/volume_files.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

struct QueryCommandOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  QueryOptions queries;
  RunOptions run;
  std::string out;
  std::string domain = "all";
  int64_t top = 5;
  bool dry_run = false;
  bool json = false;
  bool force = false;
  bool quiet = false;
};

/// The head tasks of the selection, and the row lists that they borrow.
struct QueryTasks {
  std::vector<SelectedCall> calls;
  std::vector<std::vector<int64_t>> rows;
  std::vector<HeadTask> tasks;
  std::vector<size_t> call_of_task;
};

QueryTasks make_tasks(const QueryCommandOptions& o, const Capture& capture) {
  QueryTasks q;
  if (!o.queries.any()) throw usage_error("query needs --query T,Y,X or --index N");
  q.calls = capture.select(parse_selection(o.selection));
  q.rows.reserve(q.calls.size());
  for (size_t c = 0; c < q.calls.size(); ++c) {
    const AttentionProblem& problem = *q.calls[c].call->problem;
    q.rows.push_back(resolve_queries(o.queries, problem));
    for (int64_t b : q.calls[c].batch) {
      for (int64_t h : q.calls[c].heads) {
        q.tasks.push_back({&problem, b, h, {}, q.rows.back(), {0, problem.num_keys()}});
        q.call_of_task.push_back(c);
      }
    }
  }
  return q;
}

/// The number of the batch item's token strings among the volumes' lists; a new list where they are
/// new.
size_t token_list_of(QueryVolumes& volumes, const CallEntry& call, int64_t batch) {
  if (call.tokens.empty()) return 0;
  const auto& tokens = call.tokens[call.tokens.size() == 1 ? 0 : static_cast<size_t>(batch)];
  auto& lists = volumes.token_lists;
  const auto found = std::find(lists.begin(), lists.end(), tokens);
  const auto number = static_cast<size_t>(found - lists.begin());
  if (found == lists.end()) lists.push_back(tokens);
  return number;
}

/// What all volumes have in common, and for each of them everything but its values. Throws
/// Error(usage) where the selected calls' keys differ in kind.
QueryVolumes describe_volumes(const QueryCommandOptions& o, const Capture& capture,
                              const QueryTasks& q) {
  QueryVolumes volumes;
  const TokenGrid& first = q.tasks.front().problem->key_tokens();
  volumes.grid = {first.frames(), first.height(), first.width()};
  volumes.model = q.calls.front().call->model;
  volumes.capture = capture.path().filename().string();
  volumes.domain = o.domain;
  volumes.query_text =
      describe_queries(o.queries, static_cast<int64_t>(q.tasks.front().row_list.size()));
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    const HeadTask& task = q.tasks[i];
    const TokenGrid& grid = task.problem->key_tokens();
    if (grid.grid_text() != first.grid_text() || grid.text_text() != first.text_text()) {
      throw usage_error(fmt::format(
          "the selected calls have different token grids ({} with text {} in {}, {} with text {} "
          "in {}): select calls of one kind with --kind",
          first.grid_text(), first.text_text(), q.tasks.front().problem->name(), grid.grid_text(),
          grid.text_text(), task.problem->name()));
    }
    const CallEntry& call = *q.calls[q.call_of_task[i]].call;
    QueryVolume volume;
    volume.step = call.id.step;
    volume.layer = call.id.layer;
    volume.batch = task.batch;
    volume.head = task.head;
    volume.branch = branch_of(call.id, task.batch);
    volume.kind = kind_name(call.id.kind);
    volume.label = fmt::format("step {} layer {} {} {} batch {} head {}", volume.step, volume.layer,
                               volume.branch, volume.kind, volume.batch, volume.head);
    // The query is a place in these volumes only where queries and keys are the same tokens.
    if (call.id.kind != CallKind::cross) {
      volume.query = single_query_coord(o.queries, *task.problem);
    }
    volume.tokens = token_list_of(volumes, call, task.batch);
    volumes.volumes.push_back(std::move(volume));
  }
  return volumes;
}

/// Divides a row into text and video; the longer part stays where it is in memory.
void set_values(QueryVolume& volume, const TokenGrid& keys, std::vector<float> row) {
  const IndexRange text = keys.text_range();
  if (keys.video_range().empty()) {
    volume.text = std::move(row);
    return;
  }
  volume.text.assign(row.begin() + text.begin, row.begin() + text.end);
  row.erase(row.begin() + text.begin, row.begin() + text.end);
  volume.video = std::move(row);
}

using VolumeWriter = void (*)(const QueryVolumes&, const std::filesystem::path&, bool force);

/// The writer that the file's name asks for; checks what can be checked before the work.
VolumeWriter writer_for(const QueryCommandOptions& o, const Capture& capture, const QueryTasks& q) {
  const TokenGrid& keys = q.tasks.front().problem->key_tokens();
  const std::string extension = std::filesystem::path(o.out).extension().string();
  const std::vector<std::pair<std::string_view, VolumeWriter>> writers{{".npy", write_volumes_npy},
                                                                       {".h5", write_volumes_hdf5},
                                                                       {".csv", write_volumes_csv},
                                                                       {".png", write_volumes_png},
                                                                       {".gif", write_volumes_gif}};
  const auto found = std::find_if(writers.begin(), writers.end(),
                                  [&](const auto& entry) { return entry.first == extension; });
  if (found == writers.end()) {
    throw usage_error(
        fmt::format("-o {}: the name must end in .npy, .h5, .csv, .png or .gif (got \"{}\")", o.out,
                    extension));
  }
  const bool volume_needed = extension == ".npy" || extension == ".png" || extension == ".gif";
  const bool text = !keys.text_range().empty();
  if (!keys.has_grid() && (volume_needed || (extension == ".h5" && !text))) {
    throw usage_error(
        keys.video_range().empty()
            ? fmt::format("-o {}: the keys are text and make no volume; write a .csv or .h5", o.out)
            : fmt::format("-o {}: the keys have no token grid to make a volume of; give --grid "
                          "TxHxW, or write a .csv",
                          o.out));
  }
  if (extension == ".png") {
    check_picture_size(o.out, {keys.frames(), keys.height(), keys.width()},
                       static_cast<int64_t>(q.tasks.size()));
  }
  if (extension == ".gif") check_animation_size(o.out, static_cast<int64_t>(q.tasks.size()));
  ExportFile::check_target(o.out, {.force = o.force, .inputs = capture.files()});
  return found->second;
}

/// A domain that a call's keys do not have would be zeros that look like an answer.
void check_domain(SoftmaxDomain domain, const QueryTasks& q) {
  for (const SelectedCall& selected : q.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    const TokenGrid& keys = problem.key_tokens();
    if (domain == SoftmaxDomain::frame && !keys.has_grid()) {
      throw usage_error("--domain frame: the keys of " + problem.name() +
                        " have no token grid; give --grid TxHxW");
    }
    if (domain == SoftmaxDomain::text && keys.text_range().empty()) {
      throw usage_error("--domain text: " + problem.name() + " has no text keys; give --text SPAN");
    }
    if (domain == SoftmaxDomain::video && keys.video_range().empty()) {
      throw usage_error("--domain video: the keys of " + problem.name() + " are all text");
    }
  }
}

/// Bytes of the values that the output holds.
int64_t value_bytes(const QueryTasks& q) {
  int64_t bytes = 0;
  for (const HeadTask& task : q.tasks) bytes += task.problem->num_keys() * 4;
  return bytes;
}

void print_plan(const QueryCommandOptions& o, const QueryTasks& q, const TilePlan& plan,
                const MemoryBudget& budget, double seconds) {
  const int64_t memory = plan.bytes_total + budget.used();
  if (o.json) {
    print_json({{"format", "attnscope-plan/1"},
                {"heads", q.tasks.size()},
                {"payload_bytes", value_bytes(q)},
                {"entries", plan.entries},
                {"flops", plan.flops},
                {"expected_seconds", seconds},
                {"memory_bytes", memory},
                {"budget_bytes", budget.limit()},
                {"workers", plan.workers}},
               false);
    return;
  }
  fmt::print("heads          {}\nvalues         {}\narithmetic     {}FLOP\n", q.tasks.size(),
             format_bytes(value_bytes(q)), format_count(plan.flops));
  fmt::print("expected time  {}\nmemory         {} of {}\nplan           {}\n",
             format_seconds(seconds), format_bytes(memory), format_bytes(budget.limit()),
             plan.describe());
}

/// Computes the rows; throws Error(interrupted) when it was stopped.
void collect_rows(const QueryTasks& q, const TilePlan& plan, const TileBackend& backend,
                  MemoryBudget& budget, RowCollector& rows, const Console& console) {
  const InterruptWatch interrupts;
  check_values(q.tasks, interrupts.token());
  Progress progress(console, "query", plan.tiles,
                    static_cast<double>(plan.entries) / static_cast<double>(plan.tiles), "entries");
  StreamControl control;
  control.stop = interrupts.token();
  control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done); };
  StreamingEngine engine(backend, budget);
  if (!engine.run(q.tasks, plan, rows, control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
}

int run_query(const QueryCommandOptions& o) {
  const Console console(o.quiet);
  const SoftmaxDomain domain = parse_domain(o.domain);
  const Capture capture = open_capture(o.capture, console);
  const QueryTasks q = make_tasks(o, capture);
  check_domain(domain, q);
  QueryVolumes volumes = describe_volumes(o, capture, q);
  const VolumeWriter writer = o.out.empty() ? nullptr : writer_for(o, capture, q);
  const auto backend = make_backend(parse_backend(o.run.backend), {o.run.threads});
  MemoryBudget budget(memory_limit(o.run));
  const int workers = o.run.threads > 0 ? o.run.threads : backend->workers();
  RowCollector rows(q.tasks, domain, workers, budget);
  const TilePlan plan =
      plan_tiles(q.tasks, rows.request(), *backend, budget.available(), o.run.threads);
  if (o.dry_run) {
    print_plan(o, q, plan, budget,
               expected_seconds(q.tasks, rows.request(), plan, *backend, budget));
    return kExitOk;
  }
  collect_rows(q, plan, *backend, budget, rows, console);
  Json heads = Json::array();
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    const auto task = static_cast<int64_t>(i);
    QueryVolume& volume = volumes.volumes[i];
    std::vector<float> row = rows.take_mean(task);
    if (writer == nullptr || o.json) {
      heads.push_back(
          summarise_row(volume, q.tasks[i], row, rows.lse(task), volumes.tokens_of(volume), o.top));
    }
    if (writer != nullptr) set_values(volume, q.tasks[i].problem->key_tokens(), std::move(row));
  }
  if (writer != nullptr) {
    writer(volumes, o.out, o.force);
    console.say(fmt::format("wrote {} ({} head{}, domain {})", o.out, volumes.volumes.size(),
                            volumes.volumes.size() == 1 ? "" : "s", o.domain));
    if (!o.json) return kExitOk;
  }
  if (o.json) {
    print_json({{"format", "attnscope-query/1"},
                {"query", volumes.query_text},
                {"domain", o.domain},
                {"heads", heads}},
               true);
  } else {
    fmt::print("{}, domain {}\n", volumes.query_text, o.domain);
    print_row_summaries(heads);
  }
  return kExitOk;
}

}  // namespace

Command add_query_command(CLI::App& app) {
  auto options = std::make_shared<QueryCommandOptions>();
  QueryCommandOptions& o = *options;
  CLI::App* command =
      app.add_subcommand("query", "one token's attention over the video, as a T x H x W volume");
  add_capture_options(*command, o.capture);
  command
      ->add_option(
          "-o", o.out,
          "write .npy [n,T,H,W], .h5, .csv, a .png filmstrip or a .gif that plays it; without it,\n"
          "a summary is printed")
      ->type_name("FILE");
  add_query_options(*command, o.queries, false);
  command
      ->add_option(
          "--domain", o.domain,
          "over which keys each row is renormalised: all (as it is), video, text, or frame\n"
          "(within each frame); keys outside the domain are 0")
      ->type_name("NAME");
  command->add_option("--top", o.top, "how many of the largest keys the summary lists")
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
  add_selection_options(*command, o.selection);
  add_run_options(*command, o.run);
  command->add_flag("--dry-run", o.dry_run, "print what it would take; compute nothing");
  command->add_flag("--force", o.force, "replace FILE if it exists");
  command->add_flag("--json", o.json, "print the summary as JSON");
  command->add_flag("--quiet", o.quiet, "no narration");
  command->footer(
      "Examples:\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2 --heads 0 -o film.png\n"
      "  attnscope query dump/ --query 3,6:10,5:9 --domain video -o volume.npy");
  return {command, [options] { return run_query(*options); }};
}

}  // namespace attnscope
