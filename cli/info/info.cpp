#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/left_out_names.h"
#include "cli/common/option_use.h"
#include "cli/common/output_options.h"
#include "cli/common/shell_words.h"
#include "cli/common/unknown_state.h"
#include "cli/info/info_export.h"
#include "cli/info/info_forwards.h"
#include "cli/info/info_guesses.h"
#include "cli/info/info_mask.h"
#include "cli/run/capture_check.h"
#include "cli/run/head_where.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/stream/value_check.h"
#include "io/capture/call/call_minus.h"
#include "io/capture/call/call_part.h"
#include "io/capture/capture.h"
#include "io/capture/computable.h"
#include "io/capture/partial_calls.h"
#include "io/export/format/export_manifest.h"
#include "io/files/json_types.h"
#include "io/metrics/metric_journal.h"
#include "io/segments/head_name_json.h"
#include "io/segments/segment_json.h"

namespace attnscope {
namespace {

/// Values are scanned without being asked up to this size of q and k.
constexpr int64_t kScanBytes = int64_t{4} << 30;

struct InfoOptions {
  CommandParser command;
  CaptureOptions capture;
  SelectionOptions selection;
  bool scan = false;
  bool no_scan = false;
  bool json = false;
  bool quiet = false;
};

int64_t tensor_bytes(const HeadTensor& t) {
  return t.batch() * t.heads() * t.tokens() * t.row_bytes();
}

/// Bytes of `maps` maps in f16; nothing where no file could be that large.
std::optional<int64_t> map_bytes(const AttentionProblem& p, int64_t maps) {
  const int64_t factors[] = {p.num_queries(), p.num_keys(), 2, maps};
  return checked_count(factors);
}

std::string size_text(std::optional<int64_t> bytes) {
  return bytes ? format_bytes(*bytes) : "more than 8 EiB";
}

std::string branch_text(const CallEntry& call) {
  std::string text;
  for (const std::string& branch : call.id.branches) text += (text.empty() ? "" : "+") + branch;
  return text;
}

OrderedJson call_json(const CallEntry& call, const std::optional<NamedFolder>& folder) {
  const AttentionProblem& p = *call.problem;
  OrderedJson json;
  json["file"] = call.file.string();
  const Unrecorded& unrecorded = call.id.place.unrecorded;
  const bool no_layer = unrecorded.layer || call.id.layer == kNoLayer;
  json["step"] = unrecorded.step ? OrderedJson() : OrderedJson(call.id.step);
  json["layer"] = no_layer ? OrderedJson() : OrderedJson(call.id.layer);
  add_place(json, call.id.place);
  json["branches"] = unrecorded.branch ? OrderedJson() : OrderedJson(call.id.branches);
  json["kind"] = kind_name(call.id.kind);
  json["batch"] = p.batch();
  json["heads"] = p.num_heads();
  json["kv_heads"] = p.num_kv_heads();
  json["queries"] = p.num_queries();
  json["keys"] = p.num_keys();
  json["head_dim"] = p.head_dim();
  json["dtype"] = dtype_name(call.recorded_dtype());
  if (!call.codes.empty()) json["codes"] = call.codes;
  json["scale"] = one_or_list(p.scales().each());
  json["score"] = score_name(p.score());
  if (!p.sinks().is_none()) json["sinks"] = p.sinks().describe();
  if (const auto minus = minus_of(call)) {
    json["minus"] = {{"slot", minus->slot}, {"factor", minus->factor}};
    if (minus->heads) json["minus"]["heads"] = *minus->heads;
  }
  json["mask"] = p.mask().describe();
  for (const auto& [name, tokens] :
       {std::pair("query_segments", &p.query_tokens()), {"key_segments", &p.key_tokens()}}) {
    if (tokens->has_map()) json[name] = segments_json(*tokens);
  }
  json["grid"] = p.query_tokens().grid_text();
  json["text"] = p.key_tokens().text_text();
  const auto bytes = map_bytes(p, 1);
  json["map_bytes_f16"] = bytes ? OrderedJson(*bytes) : OrderedJson();
  json["model"] = known_text(call.model);
  json["prompt"] = known_text(call.prompt);
  OrderedJson facts;
  for (const auto& [name, fact] : call.facts) {
    facts[name] = {{"value", OrderedJson::parse(fact.json, nullptr, false)},
                   {"origin", fact.origin}};
  }
  json["facts"] = facts;
  json["guesses"] = guesses_json(guesses_of(call, folder));
  json["presets"] = OrderedJson::array();
  for (const FittingPreset& preset : fitting_presets(p)) json["presets"].push_back(preset.name);
  json["fits"] = presets_json(fitting_presets(p));
  json["unknown_keys"] = call.unknown_keys;
  return json;
}

/// Scans the values; returns what to say about them.
std::string scan_values(const std::vector<SelectedCall>& selected, bool asked, bool refused,
                        std::stop_token stop) {
  if (refused) return "not scanned (--no-scan)";
  int64_t bytes = 0;
  for (const SelectedCall& s : selected) {
    bytes += tensor_bytes(s.call->problem->q()) + tensor_bytes(s.call->problem->k());
  }
  if (bytes > kScanBytes && !asked) {
    return fmt::format("not scanned ({}; --scan does)", format_bytes(bytes));
  }
  std::vector<HeadTask> heads;
  for (const SelectedCall& s : selected) {
    const IndexRange rows{0, s.call->problem->num_queries()};
    for (int64_t b : s.batch) {
      for (int64_t h : s.heads) heads.push_back({s.call->problem.get(), b, h, rows, {}, {}});
    }
  }
  check_values(heads, stop);
  return fmt::format("finite ({} scanned)", format_bytes(bytes));
}

/// Empty where there are none.
std::string list_text(const std::set<int64_t>& values) {
  if (values.empty()) return "";
  const std::vector<int64_t> list(values.begin(), values.end());
  return format_index_list(list);
}

/// Calls that differ only in step, layer and branch, told once.
struct ShapeGroup {
  const CallEntry* first = nullptr;
  int64_t calls = 0;
  int64_t without_step = 0, without_layer = 0, without_branch = 0;  ///< calls: nobody recorded it
  std::set<int64_t> steps, layers, chunks, forwards;
  std::set<std::string> branches, blocks;
  std::set<double> factors;                            ///< of what is taken from their results
  std::map<std::string, std::set<std::string>> facts;  ///< those that decide no shape, as JSON
};

/// "text 226 + video 13x30x45 + ref1 1x30x45 (reference)"
std::string segments_text(const TokenGrid& tokens) {
  std::string text;
  for (const TokenSegment& segment : tokens.segments()) {
    const auto& [t, h, w] = segment.grid;
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", segment.name,
                        segment.has_grid() ? fmt::format("{}x{}x{}", t, h, w)
                                           : std::to_string(segment.tokens.size()));
    std::string about;
    if (segment.name.rfind(modality_name(segment.modality), 0) != 0) {
      about = modality_name(segment.modality);
    }
    if (segment.order != CellOrder::raster) {
      about += about.empty() ? "" : ", ";
      about += segment.order == CellOrder::tiles
                   ? fmt::format("in tiles of {}", fmt::join(segment.tile, "x"))
                   : "in an order of its own";
    }
    if (!about.empty()) text += " (" + about + ")";
  }
  return text;
}

/// Of one name, what is taken from calls' results.
std::string minus_kind(const CallEntry& call) {
  const auto minus = minus_of(call);
  return minus ? fmt::format("{}:{}", minus->slot, minus->heads.value_or(0)) : "";
}

/// "0.2 to 0.7 times the result of attn.2 is taken from this one's", of factors from the first on.
std::string minus_text(const CallMinus& minus, const std::set<double>& factors) {
  std::string times = fmt::format("{:.6g}", *factors.begin());
  if (factors.size() > 1) times += fmt::format(" to {:.6g}", *factors.rbegin());
  if (minus.heads) {
    return fmt::format(
        "{} times the result of head h + {} of {} is taken from that of head h, for h < {}", times,
        *minus.heads, minus.slot, *minus.heads);
  }
  return fmt::format("{} times the result of {} is taken from this one's", times, minus.slot);
}

std::vector<ShapeGroup> group_by_shape(const std::vector<SelectedCall>& selected) {
  std::vector<ShapeGroup> groups;
  std::vector<std::string> signatures;
  for (const SelectedCall& s : selected) {
    const AttentionProblem& p = *s.call->problem;
    const std::string signature = fmt::format(
        "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", kind_name(s.call->id.kind),
        s.call->id.place.slot, p.batch(), p.num_heads(), p.num_kv_heads(), p.num_queries(),
        p.num_keys(), p.head_dim(), fmt::join(p.scales().each(), ","),
        dtype_name(s.call->recorded_dtype()), p.mask().describe(), p.query_tokens().grid_text(),
        p.key_tokens().text_text(), layout_name(p.q().layout()), segments_text(p.query_tokens()),
        segments_text(p.key_tokens()), score_name(p.score()), p.sinks().describe(),
        fmt::join(s.call->codes, " "), minus_kind(*s.call));
    size_t at = static_cast<size_t>(std::find(signatures.begin(), signatures.end(), signature) -
                                    signatures.begin());
    if (at == groups.size()) {
      signatures.push_back(signature);
      groups.emplace_back().first = s.call;
    }
    ShapeGroup& group = groups[at];
    ++group.calls;
    const Unrecorded& unrecorded = s.call->id.place.unrecorded;
    group.without_step += unrecorded.step ? 1 : 0;
    group.without_layer += unrecorded.layer ? 1 : 0;
    group.without_branch += unrecorded.branch ? 1 : 0;
    if (!unrecorded.step) group.steps.insert(s.call->id.step);
    if (s.call->id.layer != kNoLayer && !unrecorded.layer) group.layers.insert(s.call->id.layer);
    if (s.call->id.place.has_chunk()) group.chunks.insert(s.call->id.place.chunk);
    const CallForward& forward = s.call->id.place.forward;
    if (forward.is_stated()) group.forwards.insert(forward.forward);
    if (!s.call->id.place.block.empty()) group.blocks.insert(s.call->id.place.block);
    if (const auto minus = minus_of(*s.call)) group.factors.insert(minus->factor);
    if (!unrecorded.branch) group.branches.insert(branch_text(*s.call));
    for (const char* name : {"layer_name", "timestep", "axes", "head_offset", "text_valid",
                             "approximation", "extra"}) {
      const auto found = s.call->facts.find(name);
      if (found != s.call->facts.end()) group.facts[name].insert(found->second.json);
    }
  }
  return groups;
}

/// All of a few blocks, the first and the last of many.
std::string blocks_text(const std::set<std::string>& blocks) {
  constexpr size_t kListed = 4;
  if (blocks.size() > kListed) {
    return fmt::format("{} of them, {} to {}", blocks.size(), *blocks.begin(), *blocks.rbegin());
  }
  return fmt::format("{}", fmt::join(blocks, ", "));
}

std::string origin_note(const CallEntry& call, const std::string& fact) {
  const auto found = call.facts.find(fact);
  if (found == call.facts.end() || found->second.origin == "recorded") return "";
  return fmt::format("  ({})", found->second.origin);
}

void print_group(const ShapeGroup& g, const std::optional<NamedFolder>& folder) {
  const CallEntry& call = *g.first;
  const AttentionProblem& p = *call.problem;
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<10} {}\n", name, one_line(value));
  };
  fmt::print("{} {} attention call{}\n", g.calls, kind_name(call.id.kind), g.calls == 1 ? "" : "s");
  // Of some calls alone where others record it.
  const auto recorded = [&](const std::string& values, int64_t without) {
    if (without == 0) return values;
    return values.empty() ? "not recorded"
                          : fmt::format("{}; of {} of the calls not recorded", values, without);
  };
  line("steps", recorded(list_text(g.steps), g.without_step));
  if (!g.chunks.empty()) line("chunks", list_text(g.chunks));
  if (!g.layers.empty() || g.without_layer > 0) {
    line("layers", recorded(list_text(g.layers), g.without_layer));
  }
  if (!g.blocks.empty()) line("blocks", blocks_text(g.blocks));
  if (!call.id.place.slot.empty()) line("slot", call.id.place.slot);
  std::string branches;
  for (const std::string& b : g.branches) branches += (branches.empty() ? "" : ", ") + b;
  line("branches", recorded(branches, g.without_branch));
  if (!g.forwards.empty())
    line("forwards", list_text(g.forwards) + " (attnscope relabel tells their branches)");
  line("q", fmt::format("[{}, {}, {}, {}] {} {}{}", p.batch(), p.num_heads(), p.num_queries(),
                        p.head_dim(), dtype_name(g.first->recorded_dtype()),
                        layout_name(p.q().layout()), origin_note(call, "layout")));
  line("k", fmt::format("[{}, {}, {}, {}]{}", p.k().batch(), p.num_kv_heads(), p.num_keys(),
                        p.head_dim(), p.v() ? ", v recorded" : ""));
  if (!call.codes.empty()) line("codes", fmt::format("{}", fmt::join(call.codes, "; ")));
  if (p.query_tokens().has_map()) {
    line("queries", segments_text(p.query_tokens()));
    if (!(p.key_tokens() == p.query_tokens())) line("keys", segments_text(p.key_tokens()));
  } else {
    line("grid", p.query_tokens().grid_text() + origin_note(call, "grid"));
    line("text", p.key_tokens().text_text() + origin_note(call, "text"));
  }
  if (const auto part = part_of(call)) {
    line("part", part_text(*part) + (part->has_some_tokens()
                                         ? ": its rows are not whole before attnscope convert "
                                           "--stitch joins the ranks"
                                         : ""));
  }
  if (p.score() != ScoreFunction::softmax) {
    const bool divided = is_signed(p.score());
    line("score",
         fmt::format("{}{}{}", score_name(p.score()),
                     divided ? ": q·k / normaliser, of either sign; rows do not add up to 1" : "",
                     origin_note(call, "score")));
  }
  if (!p.sinks().is_none()) {
    line("sinks", p.sinks().describe() + " in the denominator alone; rows add up to less than 1");
  }
  line("scale", p.scales().words(8) + origin_note(call, "scale"));
  line("mask", mask_text(call) + origin_note(call, "mask"));
  if (const auto minus = minus_of(call)) line("minus", minus_text(*minus, g.factors));
  line("state", call.q_state.empty() ? "not recorded" : call.q_state);
  for (const auto& [fact, values] : g.facts) {
    line(fact, values.size() == 1 ? *values.begin()
                                  : fmt::format("{} values, {} to {}", values.size(),
                                                *values.begin(), *values.rbegin()));
  }
  line("map",
       fmt::format("{} x {} a head: {} in f16, {} for a call", p.num_queries(), p.num_keys(),
                   size_text(map_bytes(p, 1)), size_text(map_bytes(p, p.batch() * p.num_heads()))));
  for (const FittingPreset& preset : fitting_presets(p)) line("fits", preset_text(preset));
  // Where steps and layers come from names, they do so for each call.
  for (const Guess& guess : guesses_of(call, folder)) {
    const bool own = guess.fact == "step" || guess.fact == "layer";
    if (!own || g.calls == 1) line("guessed", guess_text(guess));
  }
}

/// The preset that states the token map of bare tensors, which no other option can.
std::string preset_of(const CaptureOptions& o, const CallEntry& call) {
  if (o.texts.preset) return *o.texts.preset;
  constexpr std::string_view kGuessed = "guessed from preset ";
  const auto map = call.facts.find("queries");
  if (map == call.facts.end() || !map->second.origin.starts_with(kGuessed)) return "";
  return map->second.origin.substr(kGuessed.size());
}

/// The command line that opens these bare tensors with everything said that was guessed or assumed,
/// as a shell takes it.
std::string full_command(const CaptureOptions& o, const CallEntry& call) {
  const AttentionProblem& p = *call.problem;
  std::string command = "attnscope view";
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", option, shell_word(value));
  };
  add("--q", o.tensors.q);
  add("--k", o.tensors.k);
  add("--v", o.tensors.v);
  // Not that of the problem: a rotary embedding gives its tensors a layout of its own.
  const auto layout = call.facts.find("layout");
  if (o.texts.layout) {
    add("--layout", *o.texts.layout);
  } else if (layout != call.facts.end() && layout->second.json.size() > 2) {
    add("--layout", layout->second.json.substr(1, layout->second.json.size() - 2));
  }
  if (p.query_tokens().has_map()) {
    add("--preset", preset_of(o, call));
  } else {
    if (p.query_tokens().has_grid()) add("--grid", p.query_tokens().grid_text());
    add("--text", p.key_tokens().text_text());
  }
  add("--scale", fmt::format("{}", fmt::join(p.scales().each(), ",")));
  add("--mask", o.texts.mask.value_or("none"));
  if (o.score != "softmax") add("--score", o.score);
  add("--rope", o.texts.rope.value_or(""));
  add("--sinks", o.texts.sinks.value_or(""));
  add("--alibi", o.texts.alibi.value_or(""));
  add("--relative-bias", o.texts.relative_bias.value_or(""));
  add("--cu-seqlens", o.texts.cu_seqlens.value_or(""));
  add("--cu-seqlens-k", o.texts.cu_seqlens_k.value_or(""));
  add("--q-scale", o.texts.q_scale.value_or(""));
  add("--k-scale", o.texts.k_scale.value_or(""));
  add("--q-dtype", o.texts.q_dtype.value_or(""));
  add("--k-dtype", o.texts.k_dtype.value_or(""));
  for (const std::string& told : o.told) add("--as", told);
  return command;
}

void print_unknown(const Capture& capture) {
  for (const std::string& key : capture.unknown_keys()) {
    fmt::print("not understood: {}\n", one_line(key));
  }
  for (const CallEntry& call : capture.calls()) {
    for (const std::string& key : call.unknown_keys) {
      fmt::print("not understood: {} in {}\n", one_line(key),
                 one_line(call.file.filename().string()));
    }
  }
}

/// Lines on facts that pictures and checks could use but nobody recorded, with the remedy.
std::vector<std::string> missing_parts(const Capture& capture,
                                       const std::vector<SelectedCall>& selected, bool bare) {
  bool tokens = false, frames = false, outputs = false;
  for (const SelectedCall& s : selected) {
    const AttentionProblem& p = *s.call->problem;
    tokens |= !p.key_tokens().text_range().empty() && s.call->tokens.empty();
    frames |= p.query_tokens().has_grid() && capture.frames().empty();
    outputs |= !s.call->lse && !(s.call->out && p.v());
  }
  const std::string convert = bare ? "the same options to attnscope convert, and "
                                   : fmt::format("attnscope convert {} ", capture.path().string());
  std::vector<std::string> lines;
  if (tokens) {
    lines.push_back("the text's tokens, to find words by: " + convert + "--tokens FILE -o NEW");
  }
  if (frames) {
    lines.push_back("pictures of the video, to draw on: " + convert + "--video-frames DIR -o NEW");
  }
  if (outputs) {
    lines.emplace_back(
        "output rows with v, or the LSE, to check it with: record them when capturing");
  }
  return lines;
}

/// A text that every call records for itself: usually the same in all.
void print_texts(const char* name, const std::vector<SelectedCall>& selected,
                 std::string CallEntry::*member) {
  std::set<std::string> seen;
  for (const SelectedCall& call : selected) {
    const std::string& text = call.call->*member;
    if (text.empty() || !seen.insert(text).second) continue;
    fmt::print("{}: {}\n", name, one_line(text));
  }
}

/// A call whose batch items have other heads chosen stands once, with the heads of all of them.
std::vector<SelectedCall> each_call_once(std::vector<SelectedCall> calls) {
  std::vector<SelectedCall> once;
  const auto unite = [](std::vector<int64_t>& all, const std::vector<int64_t>& more) {
    std::vector<int64_t> both;
    std::set_union(all.begin(), all.end(), more.begin(), more.end(), std::back_inserter(both));
    all = std::move(both);
  };
  for (SelectedCall& call : calls) {
    if (once.empty() || once.back().call != call.call) {
      once.push_back(std::move(call));
      continue;
    }
    unite(once.back().batch, call.batch);
    unite(once.back().heads, call.heads);
  }
  return once;
}

int run_info(InfoOptions o) {
  const Console console(o.quiet);
  if (o.scan && o.no_scan) throw usage_error("give --scan or --no-scan, not both");
  const bool is_journal = is_metric_journal(o.capture.capture);
  if (is_journal || is_export_file(o.capture.capture)) {
    refuse_capture_options(o.command, o.capture.capture, "is an export, and all of it is told",
                           {"--links", "--scan", "--no-scan"});
    return is_journal ? print_journal_info(o.capture.capture, o.json)
                      : print_export_info(o.capture.capture, o.json);
  }
  const Capture capture = open_any_capture(o.capture, {}, console);
  const bool partial = has_partial_calls(capture);
  if (!partial) check_capture(capture, o.capture, console);
  settle_where(o.selection, capture, {}, console);
  const auto selected = each_call_once(select_and_tell(capture, o.selection, console));
  std::vector<std::string> missing;
  if (!partial) missing = missing_parts(capture, selected, o.capture.capture.empty());
  const std::string shaping = shaping_fault(capture);
  if (!shaping.empty()) console.warn("warning: no map is computed of " + shaping);
  const InterruptWatch interrupts(console);
  const std::string values = scan_values(selected, o.scan, o.no_scan, interrupts.token());
  capture.require_unchanged();
  if (o.json) {
    OrderedJson json;
    json["format"] = "attnscope-info/1";
    json["path"] = capture.path().string();
    json["model"] = known_text(capture.model());
    json["prompt"] = known_text(capture.prompt());
    json["extra"] = capture.extra().empty() ? OrderedJson()
                                            : OrderedJson::parse(capture.extra(), nullptr, false);
    json["frames"] = capture.frames().size();
    add_forward_log(json, capture.log());
    json["values"] = values;
    json["calls"] = OrderedJson::array();
    for (const SelectedCall& s : selected) {
      json["calls"].push_back(call_json(*s.call, capture.named_folder()));
    }
    json["named_folder"] = named_folder_json(capture.named_folder());
    json["command"] = o.capture.capture.empty()
                          ? OrderedJson(full_command(o.capture, *selected.front().call))
                          : OrderedJson();
    std::vector<std::string> notes = capture.warnings();
    notes.insert(notes.end(), capture.notes().begin(), capture.notes().end());
    json["notes"] = notes;
    json["unknown_keys"] = capture.unknown_keys();
    add_left_out(json, o.capture);
    json["missing"] = missing;
    print_json(json, true);
    return kExitOk;
  }
  fmt::print("{}\n", one_line(capture.path().string()));
  for (const std::string& line : named_folder_lines(capture.named_folder())) {
    fmt::print("{}\n", one_line(line));
  }
  print_texts("model", selected, &CallEntry::model);
  print_texts("prompt", selected, &CallEntry::prompt);
  if (!capture.extra().empty()) fmt::print("extra: {}\n", one_line(capture.extra()));
  if (!capture.frames().empty()) fmt::print("frames: {} pictures\n", capture.frames().size());
  for (const std::string& line : forward_lines(capture.log())) {
    fmt::print("{}\n", one_line(line));
  }
  for (const ShapeGroup& group : group_by_shape(selected))
    print_group(group, capture.named_folder());
  fmt::print("values: {}\n", values);
  for (const std::string& line : missing) {
    fmt::print("not recorded: {}\n", one_line(line));
  }
  print_unknown(capture);
  if (o.capture.capture.empty()) {
    fmt::print("to open it as told here: {}\n",
               one_line(full_command(o.capture, *selected.front().call)));
  }
  return kExitOk;
}

}  // namespace

Command add_info_command(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  InfoOptions& o = *options;
  CommandParser command(
      app, "info", "what a capture or an export holds, what was guessed, and whether it is sound");
  add_capture_options(command, o.capture);
  add_selection_options(command, o.selection);
  command.add_flag("--scan", o.scan, "scan q and k for NaN and Inf, however large they are");
  command.add_flag("--no-scan", o.no_scan, "do not scan them");
  add_output_options(command, o, {.quiet = "no notes"});
  command.footer(
      "Examples:\n"
      "  attnscope info dump/\n"
      "  attnscope info dump/ --layers last --json\n"
      "  attnscope info maps.h5\n"
      "  attnscope info --q q.npy --k k.npy --preset cogvideox-5b");
  o.command = command;
  return {command, [options] { return run_info(*options); }};
}

}  // namespace attnscope
