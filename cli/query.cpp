#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/capture_options.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/query_options.h"
#include "cli/row_collector.h"
#include "core/error.h"
#include "core/streaming_engine.h"
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

std::string branch_of(const CallEntry& call, int64_t batch) {
  const auto& names = call.id.branches;
  return names[names.size() == 1 ? 0 : static_cast<size_t>(batch)];
}

QueryVolume make_volume(const CallEntry& call, const HeadTask& task, std::span<const float> row,
                        const QueryOptions& queries) {
  const TokenGrid& keys = task.problem->key_tokens();
  QueryVolume volume;
  volume.step = call.id.step;
  volume.layer = call.id.layer;
  volume.batch = task.batch;
  volume.head = task.head;
  volume.branch = branch_of(call, task.batch);
  volume.kind = kind_name(call.id.kind);
  volume.label = fmt::format("step {} layer {} {} {} batch {} head {}", volume.step, volume.layer,
                             volume.branch, volume.kind, volume.batch, volume.head);
  const auto part = [&](IndexRange range) {
    return std::vector<float>(row.begin() + range.begin, row.begin() + range.end);
  };
  volume.video = part(keys.video_range());
  volume.text = part(keys.text_range());
  // The query is a place in these volumes only where queries and keys are the same tokens.
  if (call.id.kind != CallKind::cross) volume.query = single_query_coord(queries, *task.problem);
  return volume;
}

QueryVolumes make_volumes(const QueryCommandOptions& o, const Capture& capture, const QueryTasks& q,
                          const RowCollector& rows) {
  QueryVolumes volumes;
  const TokenGrid& first = q.tasks.front().problem->key_tokens();
  volumes.grid = {first.frames(), first.height(), first.width()};
  const CallEntry& call = *q.calls.front().call;
  if (!call.tokens.empty()) {
    const auto item = static_cast<size_t>(q.tasks.front().batch);
    volumes.text_tokens = call.tokens[call.tokens.size() == 1 ? 0 : item];
  }
  volumes.model = capture.model();
  volumes.capture = capture.path().filename().string();
  volumes.domain = o.domain;
  volumes.query_text =
      describe_queries(o.queries, static_cast<int64_t>(q.tasks.front().row_list.size()));
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    const TokenGrid& grid = q.tasks[i].problem->key_tokens();
    if (grid.grid_text() != first.grid_text() || grid.text_text() != first.text_text()) {
      throw usage_error(fmt::format(
          "the selected calls have different token grids ({} with text {} in {}, {} with text {} "
          "in {}): select calls of one kind with --kind",
          first.grid_text(), first.text_text(), q.tasks.front().problem->name(), grid.grid_text(),
          grid.text_text(), q.tasks[i].problem->name()));
    }
    volumes.volumes.push_back(make_volume(*q.calls[q.call_of_task[i]].call, q.tasks[i],
                                          rows.mean(static_cast<int64_t>(i)), o.queries));
  }
  return volumes;
}

using VolumeWriter = void (*)(const QueryVolumes&, const std::filesystem::path&);

/// The writer that the file's name asks for.
VolumeWriter writer_for(const std::string& out, bool has_grid) {
  const std::string extension = std::filesystem::path(out).extension().string();
  if (extension == ".csv") return write_volumes_csv;
  const bool known = extension == ".npy" || extension == ".h5" || extension == ".png";
  if (!known) {
    throw usage_error(fmt::format(
        "-o {}: the name must end in .npy, .h5, .csv or .png (got \"{}\")", out, extension));
  }
  if (!has_grid) {
    throw usage_error(
        fmt::format("-o {}: the keys have no token grid to make a volume of; give --grid TxHxW, or "
                    "write a .csv",
                    out));
  }
  if (extension == ".npy") return write_volumes_npy;
  return extension == ".h5" ? write_volumes_hdf5 : write_volumes_png;
}

std::string key_name(const TokenGrid& grid, int64_t index, const std::vector<std::string>& tokens) {
  if (const auto at = grid.coord(index)) return fmt::format("({},{},{})", at->t, at->y, at->x);
  const IndexRange text = grid.text_range();
  const auto n = static_cast<size_t>(index - text.begin);
  if (text.contains(index)) {
    return n < tokens.size() ? fmt::format("text {} {}", n, tokens[n]) : fmt::format("text {}", n);
  }
  return std::to_string(index);
}

/// What a head's row says in figures.
Json summarise(const QueryCommandOptions& o, const QueryVolume& volume, const HeadTask& task,
               std::span<const float> row, double lse, const std::vector<std::string>& tokens) {
  const TokenGrid& grid = task.problem->key_tokens();
  const auto mass = [&](IndexRange range) {
    return std::accumulate(row.begin() + range.begin, row.begin() + range.end, 0.0);
  };
  Json json;
  json["step"] = volume.step;
  json["layer"] = volume.layer;
  json["branch"] = volume.branch;
  json["kind"] = volume.kind;
  json["batch"] = volume.batch;
  json["head"] = volume.head;
  json["lse"] = std::isfinite(lse) ? Json(lse) : Json();
  json["text_mass"] = mass(grid.text_range());
  json["video_mass"] = mass(grid.video_range());
  Json frames = Json::array();
  const int64_t frame = grid.height() * grid.width();
  for (int64_t t = 0; t < grid.frames(); ++t) {
    const int64_t begin = grid.video_range().begin + t * frame;
    frames.push_back(mass({begin, begin + frame}));
  }
  json["frame_mass"] = frames;
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto count = std::min<size_t>(static_cast<size_t>(o.top), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(count), order.end(),
                    [&](int64_t a, int64_t b) {
                      const float x = row[static_cast<size_t>(a)];
                      const float y = row[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  Json top = Json::array();
  for (size_t i = 0; i < count; ++i) {
    top.push_back({{"key", order[i]},
                   {"place", key_name(grid, order[i], tokens)},
                   {"weight", row[static_cast<size_t>(order[i])]}});
  }
  json["top"] = top;
  return json;
}

void print_summary(const Json& heads) {
  for (const Json& head : heads) {
    fmt::print("step {} layer {} {} {} batch {} head {}\n", head["step"].get<int64_t>(),
               head["layer"].get<int64_t>(), head["branch"].get<std::string>(),
               head["kind"].get<std::string>(), head["batch"].get<int64_t>(),
               head["head"].get<int64_t>());
    fmt::print("  text {:.4f}  video {:.4f}", head["text_mass"].get<double>(),
               head["video_mass"].get<double>());
    if (!head["frame_mass"].empty()) fmt::print("  frames");
    for (const Json& mass : head["frame_mass"]) fmt::print(" {:.4f}", mass.get<double>());
    fmt::print("\n");
    for (const Json& key : head["top"]) {
      fmt::print("  {:.6f}  {}\n", key["weight"].get<double>(), key["place"].get<std::string>());
    }
  }
}

void print_plan(const QueryCommandOptions& o, const QueryTasks& q, const TilePlan& plan) {
  if (o.json) {
    const Json json{{"format", "attnscope-plan/1"},     {"heads", q.tasks.size()},
                    {"entries", plan.entries},          {"flops", plan.flops},
                    {"memory_bytes", plan.bytes_total}, {"workers", plan.workers}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("heads          {}\narithmetic     {}FLOP\nplan           {}\n", q.tasks.size(),
             format_count(plan.flops), plan.describe());
}

int run_query(const QueryCommandOptions& o) {
  const Console console(o.quiet);
  const Capture capture = open_capture(o.capture, console);
  const SoftmaxDomain domain = parse_domain(o.domain);
  const QueryTasks q = make_tasks(o, capture);
  const TokenGrid& keys = q.tasks.front().problem->key_tokens();
  const VolumeWriter writer = o.out.empty() ? nullptr : writer_for(o.out, keys.has_grid());
  if (domain == SoftmaxDomain::frame && !keys.has_grid()) {
    throw usage_error("--domain frame: the keys have no token grid; give --grid TxHxW");
  }
  if (!o.out.empty() && !o.force && std::filesystem::exists(o.out)) {
    throw file_error(o.out, "", "already exists (--force replaces it)");
  }
  const auto backend = make_backend(parse_backend(o.run.backend), {o.run.threads});
  MemoryBudget budget(memory_limit(o.run));
  RowCollector rows(q.tasks, domain, budget);
  const TilePlan plan =
      plan_tiles(q.tasks, rows.request(), *backend, budget.available(), o.run.threads);
  if (o.dry_run) {
    print_plan(o, q, plan);
    return kExitOk;
  }
  const InterruptWatch interrupts;
  for (const HeadTask& task : q.tasks) {
    if (interrupts.interrupted()) throw Error(ErrorCode::interrupted, "interrupted");
    task.problem->check_finite(task.batch, task.head);
  }
  StreamingEngine engine(*backend, budget);
  StreamControl control;
  control.stop = interrupts.token();
  if (!engine.run(q.tasks, plan, rows, control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
  const QueryVolumes volumes = make_volumes(o, capture, q, rows);
  if (writer != nullptr) {
    writer(volumes, o.out);
    console.say(fmt::format("wrote {} ({} head{}, domain {})", o.out, volumes.volumes.size(),
                            volumes.volumes.size() == 1 ? "" : "s", o.domain));
    if (!o.json) return kExitOk;
  }
  Json heads = Json::array();
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    const auto task = static_cast<int64_t>(i);
    heads.push_back(summarise(o, volumes.volumes[i], q.tasks[i], rows.mean(task),
                              rows.first_lse(task), volumes.text_tokens));
  }
  if (o.json) {
    const Json json{{"format", "attnscope-query/1"},
                    {"query", volumes.query_text},
                    {"domain", o.domain},
                    {"heads", heads}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}, domain {}\n", volumes.query_text, o.domain);
    print_summary(heads);
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
      ->add_option("-o", o.out,
                   "write .npy [n,T,H,W], .h5, .csv or a .png filmstrip; without it, a summary is\n"
                   "printed")
      ->type_name("FILE");
  add_query_options(*command, o.queries, false);
  command
      ->add_option("--domain", o.domain,
                   "renormalise each row over all keys (as it is), video, text, or each frame")
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
