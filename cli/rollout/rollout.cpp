#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/forecast.h"
#include "cli/common/query_options.h"
#include "cli/common/run_backend.h"
#include "cli/query/query_summary.h"
#include "cli/query/query_tasks.h"
#include "cli/rollout/rollout_layers.h"
#include "core/base/error.h"
#include "io/files/export_file.h"
#include "io/results/volume_files.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

struct RolloutOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  QueryOptions queries;
  RunOptions run;
  std::string out;
  int64_t top = 5;
  bool reverse = false;
  bool dry_run = false;
  bool json = false;
  bool force = false;
  bool quiet = false;
};

/// The tokens that the rollout starts from.
ChosenTokens start_tokens(const RolloutOptions& o, const RolloutStep& layer) {
  const HeadTask& task = layer.tasks.front();
  return choose_tokens(o.queries, {task.problem->query_tokens(), layer.call->tokens_of(task.batch),
                                   task.problem->name()});
}

using VolumeWriter = void (*)(const QueryVolumes&, const std::filesystem::path&, bool force);

/// The writer that the file's name asks for; checks what can be checked before the work.
VolumeWriter writer_for(const RolloutOptions& o, const Capture& capture, const TokenGrid& tokens) {
  const std::string extension = std::filesystem::path(o.out).extension().string();
  VolumeWriter writer = nullptr;
  if (extension == ".npy") writer = write_volumes_npy;
  if (extension == ".h5") writer = write_volumes_hdf5;
  if (extension == ".csv") writer = write_volumes_csv;
  if (extension == ".png") writer = write_volumes_png;
  if (writer == nullptr) {
    throw usage_error(fmt::format(
        "-o {}: the name must end in .npy, .h5, .csv or .png (got \"{}\")", o.out, extension));
  }
  if (!tokens.has_grid() && extension != ".csv") {
    throw usage_error(fmt::format(
        "-o {}: the tokens have no grid to make a volume of; give --grid TxHxW, or write a .csv",
        o.out));
  }
  ExportFile::check_target(o.out, {.force = o.force, .inputs = capture.files()});
  return writer;
}

std::string layers_text(const std::vector<RolloutStep>& layers) {
  std::vector<int64_t> numbers;
  for (const RolloutStep& layer : layers) numbers.push_back(layer.call->id.layer);
  return format_index_list(numbers);
}

void print_plan(const RolloutOptions& o, const std::vector<RolloutStep>& layers,
                const TileBackend& backend, MemoryBudget& budget) {
  double flops = 0, seconds = 0;
  int64_t bytes = 0, heads = 0;
  for (const RolloutStep& layer : layers) {
    const RowStream stream = plan_rollout_step(layer, backend, budget);
    // Layers of equal size take equally long.
    const double per_flop =
        flops > 0 ? seconds / flops
                  : expected_seconds(layer.tasks, stream.request, stream.plan, backend, budget) /
                        stream.plan.flops;
    seconds += per_flop * stream.plan.flops;
    flops += stream.plan.flops;
    heads += static_cast<int64_t>(layer.tasks.size());
    bytes = std::max(bytes, stream.plan.bytes_total +
                                RolloutLayer::bytes(layer.tasks.front().problem->num_queries(),
                                                    backend.workers()));
  }
  if (o.json) {
    print_json({{"format", "attnscope-plan/1"},
                {"layers", layers.size()},
                {"heads", heads},
                {"flops", flops},
                {"expected_seconds", seconds},
                {"memory_bytes", bytes},
                {"budget_bytes", budget.limit()}},
               false);
    return;
  }
  fmt::print("layers         {} ({} heads)\narithmetic     {}FLOP\nexpected time  {}\n",
             layers.size(), heads, format_count(flops), format_seconds(seconds));
  fmt::print("memory         {} of {}\n", format_bytes(bytes), format_bytes(budget.limit()));
}

QueryVolumes describe_volume(const RolloutOptions& o, const Capture& capture,
                             const std::vector<RolloutStep>& layers, const ChosenTokens& start) {
  const CallEntry& call = *layers.back().call;
  const HeadTask& task = layers.back().tasks.front();
  const TokenGrid& tokens = task.problem->key_tokens();
  QueryVolumes volumes;
  volumes.grid = {tokens.frames(), tokens.height(), tokens.width()};
  volumes.model = call.model;
  volumes.capture = capture.path().filename().string();
  volumes.query_text = fmt::format("rollout {} {}, layers {}", o.reverse ? "from" : "to",
                                   describe_chosen(o.queries, start, false), layers_text(layers));
  if (!call.tokens.empty()) {
    const auto words = call.tokens_of(task.batch);
    volumes.token_lists.emplace_back(words.begin(), words.end());
  }
  QueryVolume volume;
  volume.step = call.id.step;
  volume.layer = o.reverse ? layers.front().call->id.layer : call.id.layer;
  volume.batch = task.batch;
  volume.head = -1;
  volume.branch = branch_of(call.id, task.batch);
  volume.kind = kind_name(call.id.kind);
  volume.label =
      fmt::format("step {} {} {} batch {}: rollout {}, layers {}, mean of {} heads", volume.step,
                  volume.branch, volume.kind, volume.batch, o.reverse ? "to outputs" : "to inputs",
                  layers_text(layers), layers.back().tasks.size());
  volume.query = single_coord(start, tokens);
  volumes.volumes.push_back(std::move(volume));
  return volumes;
}

Json summarise(const RolloutOptions& o, const QueryVolumes& volumes,
               const std::vector<RolloutStep>& layers, const std::vector<float>& values) {
  const QueryVolume& volume = volumes.volumes.front();
  const TokenGrid& tokens = layers.back().tasks.front().problem->key_tokens();
  Json row = summarise_values(volumes, volume, tokens, values,
                              std::numeric_limits<double>::quiet_NaN(), o.top);
  Json numbers = Json::array();
  for (const RolloutStep& layer : layers) numbers.push_back(layer.call->id.layer);
  Json json{{"format", "attnscope-rollout/1"},
            {"query", volumes.query_text},
            {"direction", o.reverse ? "to_outputs" : "to_inputs"},
            {"step", volume.step},
            {"branch", volume.branch},
            {"kind", volume.kind},
            {"batch", volume.batch},
            {"layers", std::move(numbers)},
            {"heads", layers.back().tasks.size()},
            {"sum", std::accumulate(values.begin(), values.end(), 0.0)}};
  for (const char* name : {"text_mass", "video_mass", "frame_mass", "top"}) json[name] = row[name];
  return json;
}

void print_summary(const Json& json) {
  fmt::print("{}\n  sum {:.4f}  text {:.4f}  video {:.4f}", json["query"].get<std::string>(),
             json["sum"].get<double>(), json["text_mass"].get<double>(),
             json["video_mass"].get<double>());
  if (!json["frame_mass"].empty()) fmt::print("  frames");
  for (const Json& mass : json["frame_mass"]) fmt::print(" {:.4f}", mass.get<double>());
  fmt::print("\n");
  for (const Json& key : json["top"]) {
    fmt::print("  {:.6f}  {}\n", key["weight"].get<double>(),
               one_line(key["place"].get<std::string>()));
  }
}

int run_rollout(const RolloutOptions& o) {
  const Console console(o.quiet);
  const Capture capture = open_capture(o.capture, console);
  const std::vector<SelectedCall> calls = capture.select(parse_selection(o.selection));
  const std::vector<RolloutStep> layers = make_rollout_steps(calls);
  if (!o.queries.any()) {
    throw usage_error("rollout needs --query T,Y,X, --index N or --text-token N|STRING");
  }
  const AttentionProblem& problem = *layers.front().call->problem;
  const ChosenTokens start = start_tokens(o, layers.front());
  const VolumeWriter writer =
      o.out.empty() ? nullptr : writer_for(o, capture, problem.key_tokens());
  const auto backend = make_run_backend(o.run, console);
  MemoryBudget budget(memory_limit(o.run));
  // The vector in double and in float32, and what is written of it.
  const MemoryReservation reserved = budget.reserve(problem.num_queries() * 16, "the influence");
  if (o.dry_run) {
    print_plan(o, layers, *backend, budget);
    return kExitOk;
  }
  std::vector<double> influence(static_cast<size_t>(problem.num_queries()));
  const double total =
      static_cast<double>(std::accumulate(start.counts.begin(), start.counts.end(), int64_t{0}));
  for (size_t i = 0; i < start.tokens.size(); ++i) {
    influence[static_cast<size_t>(start.tokens[i])] = static_cast<double>(start.counts[i]) / total;
  }
  const auto direction = o.reverse ? RolloutDirection::to_outputs : RolloutDirection::to_inputs;
  influence = follow_influence(layers, std::move(influence), direction, *backend, budget, console);
  const std::vector<float> values(influence.begin(), influence.end());
  QueryVolumes volumes = describe_volume(o, capture, layers, start);
  const Json summary = summarise(o, volumes, layers, values);
  if (writer != nullptr) {
    set_values(volumes.volumes.front(), problem.key_tokens(), values);
    writer(volumes, o.out, o.force);
    console.say(fmt::format("wrote {} ({})", o.out, volumes.query_text));
  }
  if (o.json) {
    print_json(summary, true);
  } else if (writer == nullptr) {
    print_summary(summary);
  }
  return kExitOk;
}

}  // namespace

Command add_rollout_command(CLI::App& app) {
  auto options = std::make_shared<RolloutOptions>();
  RolloutOptions& o = *options;
  CommandParser command(app, "rollout", "influence of tokens on one another through all layers");
  add_capture_options(command, o.capture);
  command
      .add_option("-o", o.out,
                  "write .npy [1,T,H,W], .h5, .csv or a .png filmstrip; without it, a summary is\n"
                  "printed")
      .type_name("FILE");
  add_query_options(command, o.queries, false);
  add_text_token_option(command, o.queries);
  command.add_flag("--reverse", o.reverse,
                   "where the token's information goes (first layer to last), not what it is made "
                   "of\n(last layer to first)");
  command.add_option("--top", o.top, "how many of the largest places the summary lists")
      .in_range(0, 1000)
      .type_name("N");
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  command.add_flag("--dry-run", o.dry_run, "print what it would take; follow nothing");
  command.add_flag("--force", o.force, "replace FILE if it exists");
  command.add_flag("--json", o.json, "print the summary as JSON");
  command.add_flag("--quiet", o.quiet, "no narration");
  command.footer(
      "Each layer is r <- (r + r*A)/2, A the mean map of the selected heads; maps are never "
      "stored.\n"
      "Examples:\n"
      "  attnscope rollout dump/ --query 3,8,7 --steps 10\n"
      "  attnscope rollout dump/ --text-token 2 --reverse --steps 10 -o film.png");
  return {command, [options] { return run_rollout(*options); }};
}

}  // namespace attnscope
