#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/run/shard_option.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/capture/capture_folder.h"
#include "io/capture/facts/model_preset.h"
#include "io/capture/synthetic_capture.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

struct SynthOptions {
  std::string out;
  std::string preset;
  std::string grid;
  std::string text;
  std::optional<int64_t> head_dim;
  std::optional<int64_t> heads;
  std::vector<std::string> kinds;
  int64_t layers = 1;
  int64_t steps = 1;
  std::string dtype = "bf16";
  uint64_t seed = 0;
  bool values = false;
  bool alone = false;
  bool dry_run = false;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

/// Of grids without a preset.
constexpr int64_t kDefaultHeadDim = 64;

TokenGrid make_tokens(const SynthOptions& o, const ModelPreset* preset) {
  if (preset == nullptr && o.grid.empty()) {
    throw usage_error("synth needs --preset NAME or --grid TxHxW");
  }
  const auto grid = o.grid.empty() ? preset->grid : parse_grid(o.grid);
  TextSpan text = preset != nullptr ? preset->text : TextSpan{};
  if (!o.text.empty()) text = parse_text_span(o.text);
  if (text.place == TextPlace::all) {
    throw usage_error("--text all: a synthetic capture has video tokens (N@start, N@end or none)");
  }
  const auto video = checked_count(grid);
  const auto tokens = video ? checked_add(*video, text.count) : std::nullopt;
  // Token numbers must fit 31 bits wherever they are stored.
  constexpr int64_t kMaxTokens = (int64_t{1} << 31) - 1;
  if (!tokens || *tokens > kMaxTokens) {
    throw usage_error("the grid and text have more than 2^31 - 1 tokens");
  }
  if (text.count == 0) text.place = TextPlace::none;
  return TokenGrid::video(*tokens, grid, text.count, text.place);
}

/// The kinds of the heads in their cycle: those asked for, or all that the grid can hold.
std::vector<HeadKind> kind_cycle(const SynthOptions& o, const TokenGrid& tokens,
                                 const Console& console) {
  std::vector<HeadKind> cycle;
  for (const std::string& name : o.kinds) cycle.push_back(parse_head_kind(name));
  if (!cycle.empty()) return cycle;
  std::string first_obstacle;
  for (const HeadKind kind : head_kinds()) {
    const auto obstacle = head_kind_obstacle(kind, tokens);
    if (!obstacle) {
      cycle.push_back(kind);
      continue;
    }
    const std::string left_out = fmt::format("a {} head {}", head_kind_name(kind), *obstacle);
    if (first_obstacle.empty()) first_obstacle = left_out;
    console.say(fmt::format("no {} heads: {}", head_kind_name(kind), left_out));
  }
  if (cycle.empty()) {
    throw usage_error(fmt::format("grid {} is too small for any kind of head: {}",
                                  tokens.grid_text(), first_obstacle));
  }
  return cycle;
}

SyntheticCapture describe_capture(const SynthOptions& o, const Console& console) {
  const ModelPreset* preset = o.preset.empty() ? nullptr : &find_preset(o.preset);
  SyntheticCapture capture;
  capture.tokens = make_tokens(o, preset);
  capture.model = preset != nullptr ? "synthetic " + o.preset : "synthetic";
  capture.head_dim = o.head_dim.value_or(preset != nullptr ? preset->head_dim : kDefaultHeadDim);
  capture.layers = o.layers;
  capture.steps = o.steps;
  capture.dtype = *parse_dtype(o.dtype);
  capture.values = o.values;
  capture.seed = o.seed;
  const std::vector<HeadKind> cycle = kind_cycle(o, capture.tokens, console);
  // Without a model to take the number from, one head of each kind.
  const int64_t heads = o.heads.value_or(
      preset != nullptr && o.kinds.empty() ? preset->heads : static_cast<int64_t>(cycle.size()));
  for (int64_t h = 0; h < heads; ++h) {
    capture.kinds.push_back(cycle[static_cast<size_t>(h) % cycle.size()]);
  }
  return capture;
}

void print_sizes(const SyntheticCapture& c, int64_t bytes) {
  std::string kinds;
  for (const HeadKind kind : head_kinds()) {
    const auto count = std::count(c.kinds.begin(), c.kinds.end(), kind);
    if (count == 0) continue;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, head_kind_name(kind));
  }
  fmt::print("tokens    {} (grid {}, text {})\n", c.tokens.tokens(), c.tokens.grid_text(),
             c.tokens.text_text());
  fmt::print("heads     {} of dimension {}: {}\n", c.kinds.size(), c.head_dim, kinds);
  fmt::print("calls     {} ({} step{}, {} layer{})\n", c.calls(), c.steps, c.steps == 1 ? "" : "s",
             c.layers, c.layers == 1 ? "" : "s");
  fmt::print("tensors   {} bytes, {} {}\n", bytes, c.values ? "q, k, v" : "q, k",
             dtype_name(c.dtype));
}

/// Prints the size of the capture that was or, with --dry-run, would be written.
void print_synth_json(const SynthOptions& o, const SyntheticCapture& c, int64_t bytes) {
  OrderedJson json{{"format", "attnscope-synth/1"}};
  json["out"] = o.out;
  json["written"] = !o.dry_run;
  json["calls"] = c.calls();
  json["heads"] = c.calls() * std::ssize(c.kinds);
  json["payload_bytes"] = bytes;
  json["tokens"] = c.tokens.tokens();
  json["grid"] = c.tokens.grid_text();
  json["text"] = c.tokens.text_text();
  json["head_dim"] = c.head_dim;
  json["dtype"] = dtype_name(c.dtype);
  json["values"] = c.values;
  json["seed"] = c.seed;
  json["kinds"] = OrderedJson::array();
  for (const HeadKind kind : c.kinds) json["kinds"].push_back(head_kind_name(kind));
  print_json(json, true);
}

int run_synth(const SynthOptions& o) {
  const Console console(o.quiet);
  check_capture_name(o.out);
  refuse_tasks("", o.alone, o.out, kOneProcess);
  const SyntheticCapture capture = describe_capture(o, console);
  const int64_t bytes = check_synthetic_capture(capture, o.out);
  check_capture_target(o.out, {.force = o.force, .bytes = bytes});
  if (o.dry_run) {
    if (o.json) {
      print_synth_json(o, capture, bytes);
    } else {
      print_sizes(capture, bytes);
    }
    return kExitOk;
  }
  const InterruptWatch interrupts(console);
  Progress progress(console, "synth", bytes, 1, "B");
  SyntheticWriteControl control;
  control.force = o.force;
  control.stop = interrupts.token();
  control.progress = [&](int64_t written) { progress.update(written); };
  write_synthetic_capture(capture, o.out, control);
  console.say(fmt::format("wrote {} ({} call{}, {} head{}, {})", o.out, capture.calls(),
                          capture.calls() == 1 ? "" : "s", capture.kinds.size(),
                          capture.kinds.size() == 1 ? "" : "s", format_bytes(bytes)));
  if (o.json) print_synth_json(o, capture, bytes);
  return kExitOk;
}

void add_shape_options(CommandParser& command, SynthOptions& o) {
  command
      .add_option("--preset", o.preset, "grid, text, heads and head dimension of a known model: {}")
      .one_of(preset_names())
      .type_name("NAME");
  command.add_option("--grid", o.grid, "the video's latent grid, instead of the preset's")
      .type_name("TxHxW");
  command.add_option("--text", o.text, "text tokens: N@start, N@end or none").type_name("SPAN");
  command.add_option("--head-dim", o.head_dim, "channels of a head (64 without a preset)")
      .in_range(1, 4096)
      .type_name("D");
  command
      .add_option(
          "--num-heads", o.heads,
          "query heads (default: the preset's; with --head-kinds, or without a preset, one of\n"
          "each kind)")
      .in_range(1, 4096)
      .type_name("N");
  command
      .add_option(
          "--head-kinds", o.kinds,
          "what the heads look at, repeated cyclically: {} (default: all that the grid can\n"
          "hold)")
      .one_of(head_kind_names())
      .delimiter(',')
      .type_name("LIST");
  command.add_option("--num-layers", o.layers, "layers, numbered from 0")
      .in_range(1, 10000)
      .type_name("N");
  command.add_option("--num-steps", o.steps, "denoising steps, numbered from 0")
      .in_range(1, 10000)
      .type_name("N");
}

}  // namespace

Command add_synth_command(CLI::App& app) {
  auto options = std::make_shared<SynthOptions>();
  SynthOptions& o = *options;
  CommandParser command(app, "synth",
                        "write a capture of any size whose heads have a known character");
  command
      .add_option("-o", o.out,
                  "the capture: a folder, or one call's file when the name ends in .safetensors")
      .type_name("CAPTURE")
      .required();
  add_shape_options(command, o);
  command.add_option("--dtype", o.dtype, "{} (default bf16)")
      .one_of({"bf16", "f16", "f32"})
      .type_name("TYPE");
  command.add_flag("--values", o.values, "write V as well: random values of variance 1");
  command.add_option("--seed", o.seed, "of the random values; the same seed gives the same bytes")
      .type_name("N");
  add_alone_option(command, o.alone);
  command.add_flag("--dry-run", o.dry_run, "print the sizes; write nothing");
  command.add_flag("--force", o.force, "replace CAPTURE if it exists");
  command.add_flag("--json", o.json, "print what was written, or would be, as JSON");
  command.add_flag("--quiet", o.quiet, "no narration, no progress");
  command.footer(
      "Examples:\n"
      "  attnscope synth --preset hunyuanvideo --num-heads 6 -o big\n"
      "  attnscope synth --preset cogvideox-5b --head-kinds temporal,sink -o two.safetensors\n"
      "  attnscope synth --grid 5x12x20 --text 16@start -o small --num-layers 4");
  return {command, [options] { return run_synth(*options); }};
}

}  // namespace attnscope
