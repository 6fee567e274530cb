#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/left_out_names.h"
#include "cli/common/output_options.h"
#include "cli/common/picture_options.h"
#include "cli/common/pixel_query.h"
#include "cli/common/query_options.h"
#include "cli/common/text_table.h"
#include "cli/query/query_output.h"
#include "cli/query/query_summary.h"
#include "cli/query/query_tasks.h"
#include "cli/run/forecast.h"
#include "cli/run/head_run.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/shard_option.h"
#include "cli/run/team_steps.h"
#include "core/base/error.h"
#include "core/products/rollout/rollout_steps.h"
#include "core/products/tokens/text_token.h"
#include "io/capture/capture_guard.h"
#include "io/files/json_types.h"
#include "io/results/volume_output.h"

namespace attnscope {
namespace {

struct RolloutOptions : HeadRunOptions {
  QueryOptions queries;
  int64_t top = 5;
  bool reverse = false;
  PictureOptions page;
};

/// The tokens that the rollout starts from.
ChosenTokens start_tokens(const RolloutOptions& o, const SelectedCall& selected) {
  const CallEntry& call = *selected.call;
  return resolve_tokens(o.queries, {call.problem->query_tokens(),
                                    call.tokens_of(selected.batch.front()), call.problem->name()});
}

std::vector<RolloutStep> steps_of(const std::vector<SelectedCall>& calls) {
  std::vector<CallHeads> heads;
  for (const SelectedCall& selected : calls) {
    heads.push_back({selected.call->problem.get(), selected.batch, selected.heads});
  }
  return make_rollout_steps(heads);
}

std::string layers_text(const std::vector<RolloutStep>& layers) {
  std::vector<int64_t> numbers;
  for (const RolloutStep& layer : layers) numbers.push_back(layer.layer());
  const bool unknown = layers.front().problem().id().place.unrecorded.layer;
  return unknown ? "layer not recorded" : "layers " + format_index_list(numbers);
}

RunPlan make_run_plan(const std::vector<RolloutStep>& layers, const TileBackend& backend,
                      MemoryBudget& budget) {
  RunPlan plan;
  plan.command = "rollout";
  plan.seconds = 0;
  for (const RolloutStep& layer : layers) {
    const RowStream stream = plan_rollout_step(layer, backend, budget);
    // Layers of equal size take equally long.
    const double per_flop = plan.flops > 0 ? plan.seconds / plan.flops
                                           : expected_seconds(layer.tasks, stream.request,
                                                              stream.plan, backend, budget) /
                                                 stream.plan.flops;
    plan.seconds += per_flop * stream.plan.flops;
    plan.flops += stream.plan.flops;
    plan.entries += stream.plan.entries;
    plan.heads += static_cast<int64_t>(layer.tasks.size());
    plan.workers = std::max(plan.workers, stream.plan.workers);
    plan.memory_bytes =
        std::max(plan.memory_bytes,
                 stream.plan.bytes_total +
                     RolloutLayer::bytes(layer.problem().num_queries(), backend.workers()));
  }
  plan.layers = static_cast<int64_t>(layers.size());
  plan.budget_bytes = budget.limit();
  return plan;
}

QueryVolumes describe_volume(const RolloutOptions& o, const Capture& capture, const CallEntry& last,
                             const std::vector<RolloutStep>& layers, const ChosenTokens& start) {
  const int64_t batch = layers.back().tasks.front().batch;
  const TokenGrid& tokens = last.problem->key_tokens();
  QueryVolumes volumes;
  volumes.grid = {tokens.frames(), tokens.height(), tokens.width()};
  volumes.model = last.model;
  volumes.capture = capture.path().filename().string();
  volumes.query_text = fmt::format("rollout {} {}, {}", o.reverse ? "from" : "to",
                                   describe_chosen(o.queries, start, false), layers_text(layers));
  const auto words = last.tokens_of(batch);
  volumes.token_lists.front().assign(words.begin(), words.end());
  QueryVolume volume;
  volume.step = last.id.step;
  volume.layer = (o.reverse ? layers.front() : layers.back()).layer();
  volume.batch = batch;
  volume.head = -1;
  volume.branch = branch_of(last.id, batch);
  volume.kind = kind_name(last.id.kind);
  volume.place.unrecorded = last.id.place.unrecorded;
  ModelPlace all_layers;
  all_layers.unrecorded = last.id.place.unrecorded;
  all_layers.unrecorded.layer = true;
  volume.label = fmt::format(
      "{} batch {}: rollout {}, {}, mean of {} heads",
      call_words(volume.step, volume.layer, volume.branch, volume.kind, all_layers), volume.batch,
      o.reverse ? "to outputs" : "to inputs", layers_text(layers), layers.back().tasks.size());
  volume.query = single_coord(start, tokens);
  volume.chosen = volumes.list_chosen(start.tokens);
  volumes.volumes.push_back(std::move(volume));
  return volumes;
}

OrderedJson summarise(const RolloutOptions& o, const QueryVolumes& volumes,
                      const std::vector<RolloutStep>& layers, const std::vector<float>& values) {
  const QueryVolume& volume = volumes.volumes.front();
  const TokenGrid& tokens = layers.back().problem().key_tokens();
  OrderedJson row = summarise_values(volumes, volume, tokens, values,
                                     std::numeric_limits<double>::quiet_NaN(), o.top);
  OrderedJson numbers = OrderedJson::array();
  const Unrecorded& unrecorded = volume.place.unrecorded;
  for (const RolloutStep& layer : layers) {
    numbers.push_back(unrecorded.layer ? OrderedJson() : OrderedJson(layer.layer()));
  }
  OrderedJson json{{"format", "attnscope-rollout/1"},
                   {"query", volumes.query_text},
                   {"tokens", volumes.chosen_of(volume)},
                   {"direction", o.reverse ? "to_outputs" : "to_inputs"},
                   {"step", unrecorded.step ? OrderedJson() : OrderedJson(volume.step)},
                   {"branch", unrecorded.branch ? OrderedJson() : OrderedJson(volume.branch)},
                   {"kind", volume.kind},
                   {"batch", volume.batch},
                   {"layers", std::move(numbers)},
                   {"heads", layers.back().tasks.size()},
                   {"sum", std::accumulate(values.begin(), values.end(), 0.0)}};
  for (const char* name : {"text_mass", "video_mass", "frame_mass", "top"}) json[name] = row[name];
  add_left_out(json, o.capture);
  return json;
}

void print_summary(const OrderedJson& json) {
  fmt::print("{}\n  sum {}  text {}  video {}\n{}", json["query"].get<std::string>(),
             number_cell(json["sum"].get<double>()), number_cell(json["text_mass"].get<double>()),
             number_cell(json["video_mass"].get<double>()), places_text(json));
}

class RolloutRun final : public HeadRun {
 public:
  RolloutRun(RolloutOptions& options, Team& team, const Console& console)
      : HeadRun(options, team, console), o_(options) {}

 private:
  std::vector<SelectedCall> choose() override;
  int work() override;
  RunPlan forecast();
  std::vector<double> follow();
  void write(const std::vector<double>& influence);

  RolloutOptions& o_;
  std::vector<RolloutStep> layers_;
  ChosenTokens start_;
  std::optional<VolumeOutput> output_;  ///< of the first process, where there is -o
};

std::vector<SelectedCall> RolloutRun::choose() {
  std::vector<SelectedCall> calls = select();
  require_equal_heads(calls, "a rollout");
  layers_ = steps_of(calls);
  if (!o_.queries.any()) {
    throw usage_error(
        "rollout needs --query T,Y,X, --at PIXEL, --index N or --text-token N|STRING");
  }
  const AttentionProblem& problem = layers_.front().problem();
  settle_pixels(pixel_sequences(calls, false, o_.capture), o_.queries, console_);
  start_ = start_tokens(o_, calls.front());
  tell_mixed_tokens(start_.tokens, problem.query_tokens(), console_);
  if (!o_.out.empty() && team_.is_first()) {
    const QueryVolumes described =
        describe_volume(o_, capture(), *calls.back().call, layers_, start_);
    output_ = choose_volume_output(
        o_, o_.page, {problem.key_tokens(), o_.reverse, guarded_inputs(capture())}, described);
  }
  return calls;
}

RunPlan RolloutRun::forecast() {
  RunPlan plan = make_run_plan(layers_, backend(), budget());
  if (output_) plan.picture = output_->planned();
  return team_.is_alone() ? plan
                          : shared_plan(std::move(plan), rollout_units(layers_, team_.size()));
}

/// The influence at the other end, with progress, until a signal stops it: of all processes that
/// follow it together.
std::vector<double> RolloutRun::follow() {
  std::vector<HeadTask> tasks;
  for (const RolloutStep& layer : layers_) {
    tasks.insert(tasks.end(), layer.tasks.begin(), layer.tasks.end());
  }
  const CheckedRun& run = check_inputs(own_items(team_, tasks));
  constexpr double kTicks = 1000;
  const RolloutStep& first = o_.reverse ? layers_.front() : layers_.back();
  const RowStream stream = plan_rollout_step(first, backend(), budget());
  Progress progress(console_, "rollout",
                    static_cast<int64_t>(static_cast<double>(layers_.size()) * kTicks),
                    static_cast<double>(stream.plan.entries) / kTicks, "entries");
  const RolloutControl control{
      run.stop(), [&](double done) { progress.update(static_cast<int64_t>(done * kTicks)); },
      shared_work()};
  return follow_influence(layers_, start_influence(start_, first.problem().num_queries()),
                          o_.reverse ? RolloutDirection::to_outputs : RolloutDirection::to_inputs,
                          backend(), budget(), control);
}

void RolloutRun::write(const std::vector<double>& influence) {
  const std::vector<float> values(influence.begin(), influence.end());
  QueryVolumes volumes = describe_volume(o_, capture(), *calls().back().call, layers_, start_);
  const OrderedJson summary = summarise(o_, volumes, layers_, values);
  if (output_ || o_.csv) {
    set_values(volumes.volumes.front(), layers_.front().problem().key_tokens(), values);
  }
  if (output_) {
    write_volumes(output_->format, volumes, output_->film, o_.out, o_.force);
    console_.say(fmt::format("wrote {} ({})", o_.out, volumes.query_text));
  }
  print_result(
      o_.json, output_.has_value(), [&] { return summary; },
      [&] { o_.csv ? print_volumes_csv(volumes) : print_summary(summary); });
}

int RolloutRun::work() {
  OrderedJson heads = OrderedJson::array();
  for (const RolloutStep& layer : layers_) heads.push_back({layer.layer(), layer.tasks.size()});
  const AttentionProblem& problem = layers_.front().problem();
  agree({{"layers", heads},
         {"tokens", start_.tokens},
         {"--reverse", o_.reverse},
         {"backend", backend().name_for(problem)}});
  // The vector in double and in float32, and what is written of it.
  const MemoryReservation reserved = budget().reserve(problem.num_queries() * 16, "the influence");
  const auto picture = output_ ? output_->reserve(budget()) : MemoryReservation();
  if (is_only_planned({{}, {}, [&] { return forecast(); }})) return kExitOk;
  const std::vector<double> influence = follow();
  capture().require_unchanged();
  // All have what they read as it was before anything is written.
  team_.exchange("");
  if (team_.is_first()) write(influence);
  return kExitOk;
}

int run_rollout(const RolloutOptions& o) {
  refuse_shard(
      o.shard,
      "a rollout is not cut: every layer takes the mean over all heads of what the layer "
      "before it left; run one query a task, or one step, or all tasks together under MPI");
  return run_heads<RolloutRun>(o);
}

}  // namespace

Command add_rollout_command(CLI::App& app) {
  auto options = std::make_shared<RolloutOptions>();
  RolloutOptions& o = *options;
  CommandParser command(app, "rollout", "influence of tokens on one another through all layers");
  add_capture_options(command, o.capture);
  command
      .add_option("-o", o.out,
                  "write .npy [1,T,H,W], .h5, .csv, a filmstrip (.png, .svg, .pdf) or a film "
                  "(.gif, .mp4);\n"
                  "without it, a summary is printed; -: the .csv is")
      .type_name("FILE");
  take_standard_output(command, o);
  add_query_options(command, o.queries, false);
  add_text_token_option(command, o.queries);
  command.add_flag("--reverse", o.reverse,
                   "where the token's information goes (first layer to last), not what it is made "
                   "of\n(last layer to first)");
  command.add_option("--top", o.top, "how many of the largest places the summary lists")
      .in_range(0, 1000)
      .type_name("N");
  add_picture_options(command, o.page);
  add_head_run_options(command, o);
  add_output_options(
      command, o,
      {.dry_run = "print what it would take; follow nothing", .json = "print the summary as JSON"});
  command.footer(
      "Each layer is r <- (r + r*A)/2, A the mean map of the selected heads; maps are never "
      "stored.\n"
      "Examples:\n"
      "  attnscope rollout dump/ --query 3,8,7 --steps 10\n"
      "  attnscope rollout dump/ --text-token 2 --reverse --steps 10 -o film.png");
  return {command, [command, options] {
            check_picture_options(command, options->out, true);
            return run_rollout(*options);
          }};
}

}  // namespace attnscope
