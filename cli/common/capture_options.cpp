#include "cli/common/capture_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "cli/common/cache_option.h"
#include "cli/common/head_list.h"
#include "cli/common/system_memory.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/nearest_word.h"
#include "core/heads/head_condition.h"
#include "core/problem/problem_names.h"
#include "core/problem/score.h"
#include "core/tensor/layout_names.h"
#include "io/capture/call/code_tensors.h"
#include "io/capture/call/rope_option.h"
#include "io/capture/computable.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/mask_words.h"
#include "io/capture/facts/model_preset.h"
#include "io/capture/name_pattern.h"
#include "io/files/checksum.h"
#include "io/files/json_types.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

/// Every head of an ordinary file takes less; it is within what a run may take beside --memory.
constexpr int64_t kLeastHeadBytes = 16 << 20;
/// The calls of an ordinary capture take less, and that too is beside --memory.
constexpr int64_t kFreeCaptureBytes = 4 << 20;

ScoreFunction score_option(const std::string& name) {
  if (const auto score = parse_score(name)) return *score;
  throw unknown_name("--score", name, score_names());
}

/// A bar of its own for every large member of an archive whose checksum is checked.
class MemberProgress : public ReadProgress {
 public:
  MemberProgress(const Console& console, const std::string& what, int64_t bytes)
      : progress_(console, one_line("checking " + what), bytes, 1, "B") {}
  void update(int64_t bytes_done) override { progress_.update(bytes_done); }

 private:
  Progress progress_;
};

}  // namespace

void add_capture(CommandParser& command, CaptureOptions& o) {
  command
      .add_option("capture", o.capture,
                  "a capture: a folder, or a safetensors, .npz, .pt or HDF5 file with q and k")
      .type_name("CAPTURE");
}

/// Files named one after another as bare tensors, by their names. False where these do not say
/// which is which.
bool take_tensors(CaptureOptions& o, const std::vector<std::string>& files) {
  BareTensors tensors;
  for (const std::string& file : files) {
    const std::string role = role_of_file(file);
    std::string* const place = role == "q"   ? &tensors.q
                               : role == "k" ? &tensors.k
                               : role == "v" ? &tensors.v
                                             : nullptr;
    std::error_code error;
    const bool is_file =
        !std::filesystem::is_directory(file, error) && file.find("://") == std::string::npos;
    if (place == nullptr || !place->empty() || !is_file) return false;
    *place = file;
  }
  const BareTensors& named = o.tensors;
  if (tensors.q.empty() || tensors.k.empty() || !(named.q + named.k + named.v).empty())
    return false;
  o.tensors = tensors;
  o.tensors_note = "taken by their names as --q " + tensors.q + " --k " + tensors.k +
                   (tensors.v.empty() ? "" : " --v " + tensors.v);
  o.capture.clear();
  return true;
}

/// Every option but CAPTURE.
void add_input_options(CommandParser& command, CaptureOptions& o, const char* mask_option) {
  const std::string tensors = kTensorOptions;
  command.add_option("--q", o.tensors.q, "queries: a .npy, safetensors, .npz, .pt or HDF5 file")
      .type_name("FILE[:KEY]")
      .group(tensors);
  command.add_option("--k", o.tensors.k, "keys").type_name("FILE[:KEY]").group(tensors);
  command.add_option("--v", o.tensors.v, "values, where something needs them")
      .type_name("FILE[:KEY]")
      .group(tensors);
  command
      .add_option(
          "--pattern", o.texts.pattern,
          "which files of a folder are which tensors: 'x_It{step}_L{layer}_H{head}_{q|k}.npy',\n"
          "or which tensors of a file: 'blocks.{layer}.attn.{q|k}'\n"
          "({step} {layer} {head} {branch} {kind} {name}, and {q|k} or {q|k|v} for the role)")
      .type_name("PATTERN")
      .group(tensors);
  command
      .add_option(
          "--links", o.links,
          "symbolic links in a CAPTURE that is a folder: refuse, or follow, to tensors and\n"
          "capture.json alone (model hubs keep files behind links)")
      .one_of({"refuse", "follow"})
      .type_name("refuse|follow")
      .group("A CAPTURE that is a folder");
  const std::string facts = kFactOptions;
  o.texts.mask_option = mask_option;
  command.add_option("--layout", o.texts.layout, "order of the axes: {}")
      .one_of(layout_names())
      .type_name("LAYOUT")
      .group(facts);
  command.add_option("--grid", o.texts.grid, "latent frames, rows, columns: 13x30x45")
      .type_name("TxHxW")
      .group(facts);
  command
      .add_option("--text", o.texts.text,
                  "text tokens in the sequence: 226@start, 256@end, none, all")
      .type_name("SPAN")
      .group(facts);
  command.add_option("--scale", o.texts.scale, "logits are scale * q.k; auto is 1/sqrt(d)")
      .type_name("auto|NUMBER[,NUMBER a head]")
      .group(facts);
  command.add_option(mask_option, o.texts.mask, "{}, or a tensor file (bool or bias)")
      .words(mask_words())
      .type_name("MASK")
      .group(facts);
  command.add_option("--score", o.score, "where none is recorded: {}")
      .words(score_names())
      .type_name("SCORE")
      .group(facts);
  command
      .add_option("--sinks", o.texts.sinks,
                  "a logit a head or query in the denominator of the softmax alone: a number for\n"
                  "all, or a tensor [heads] or [batch, heads, queries] (default: beside q)")
      .type_name("none|NUMBER|FILE[:KEY]")
      .group(facts);
  command
      .add_option("--alibi", o.texts.alibi,
                  "slopes [heads] or [batch, heads] of linear biases: -slope * distance is added\n"
                  "to the logits (default: alibi_slopes beside q)")
      .type_name("none|FILE[:KEY]")
      .group(facts);
  command
      .add_option(
          "--relative-bias", o.texts.relative_bias,
          "biases by the difference of places, added to the logits: [heads, queries + keys\n"
          "- 1], or of the grid [heads, 2T-1, 2H-1, 2W-1] (default: relative_bias beside q)")
      .type_name("none|FILE[:KEY]")
      .group(facts);
  command.add_option("--preset", o.texts.preset, "a model whose grid and text to assume: {}")
      .one_of(preset_names())
      .type_name("NAME")
      .group(facts);
  command
      .add_option("--rope", o.texts.rope,
                  "apply rotary embedding to q and k as they are read, where they were recorded\n"
                  "before it: {} (docs/inputs.md)")
      .words(rope_words())
      .type_name("NAME")
      .group(facts);
  command
      .add_option("--cu-seqlens", o.texts.cu_seqlens,
                  "packed sequences begin and end here: 0,9,24 or a tensor file (int32 or int64\n"
                  "[sequences + 1]); each attends to itself")
      .type_name("LIST|FILE[:KEY]")
      .group(facts);
  command
      .add_option("--cu-seqlens-k", o.texts.cu_seqlens_k,
                  "the same of the keys, where they are cut elsewhere")
      .type_name("LIST|FILE[:KEY]")
      .group(facts);
  for (const auto& [name, scale, type] :
       {std::tuple("q", &FactOverrides::q_scale, &FactOverrides::q_dtype),
        {"k", &FactOverrides::k_scale, &FactOverrides::k_dtype}}) {
    command
        .add_option(
            fmt::format("--{}-scale", name), o.texts.*scale,
            fmt::format(
                "what codes in {} are multiplied by: a number or a tensor "
                "file, a scale\neach head, token or channel, or each block of tokens or channels",
                name))
        .type_name("NUMBER|FILE[:KEY]")
        .group(facts);
    command
        .add_option(fmt::format("--{}-dtype", name), o.texts.*type,
                    fmt::format("what the bytes of {} are, where its file cannot say: {{}}", name))
        .one_of(code_dtypes())
        .type_name("TYPE")
        .group(facts);
  }
  command
      .add_option("--as", o.told,
                  "a fact of the call that was not recorded: layer=17, step=25, model=wan2.1-14b,\n"
                  "branch=cond, q_state=rope ... (docs/capture-format.md)")
      .type_name("NAME=VALUE")
      .one_value_each()
      .group(facts);
  // Another word for --as NAME=none.
  const auto names = std::make_shared<std::vector<std::string>>();
  command
      .add_option(
          "--ignore", *names,
          "what is beside q and k by this name is left out, although it may shape the map:\n"
          "sinks, softcap, ... (docs/inputs.md)")
      .type_name("NAME")
      .one_value_each()
      .group(facts);
  command.after_parsing([&o, names] {
    for (const std::string& name : *names) o.told.push_back(name + "=none");
  });
}

std::map<std::string, std::string> told_facts(const std::vector<std::string>& told) {
  std::map<std::string, std::string> facts;
  std::set<std::string> names;
  for (const std::string& each : told) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw usage_error("--as " + one_line(each) + ": expected NAME=VALUE");
    }
    const std::string name = each.substr(0, equals), value = each.substr(equals + 1);
    if (!names.insert(parse_told_fact(name, value).fact).second) {
      throw usage_error("--as " + one_line(each) + ": is told twice");
    }
    facts[name] = value;
  }
  return facts;
}

void add_capture_options(CommandParser& command, CaptureOptions& o, const char* mask_option) {
  add_capture(command, o);
  command
      .add_option("tensors", o.more,
                  "where CAPTURE is a file of q, the file of k, and perhaps of v: q.pt k.pt")
      .type_name("FILE");
  add_input_options(command, o, mask_option);
  command.after_parsing([&o] {
    if (o.more.empty()) return;
    std::vector<std::string> files{o.capture};
    files.insert(files.end(), o.more.begin(), o.more.end());
    if (!take_tensors(o, files)) {
      throw usage_error(
          "unexpected argument " + o.more.front() +
          ": one CAPTURE is expected; files of tensors whose names do not say q and k "
          "are named, as --q " +
          o.capture + " --k " + o.more.front());
    }
    o.more.clear();
  });
}

void add_capture_options_of_two(CommandParser& command, CaptureOptions& o, std::string& second) {
  add_capture(command, o);
  add_input_options(command, o, "--mask");
  command.after_parsing([&o, &second] {
    if (!second.empty() && take_tensors(o, {o.capture, second})) second.clear();
  });
}

std::string score_text(const std::vector<SelectedCall>& calls) {
  const ScoreFunction first = calls.front().call->problem->score();
  const bool same = std::all_of(calls.begin(), calls.end(), [&](const SelectedCall& selected) {
    return selected.call->problem->score() == first;
  });
  return same ? score_name(first) : "mixed";
}

FactOverrides fact_overrides(const CaptureOptions& o) {
  FactOverrides facts = o.texts;
  facts.score = score_option(o.score);
  facts.told = told_facts(o.told);
  return facts;
}

ReadControl read_control(const CaptureOptions& o, const RunOptions& run, const Console& console) {
  if (o.links != "refuse" && o.links != "follow") {
    throw usage_error("--links " + o.links + ": expected refuse or follow");
  }
  return {console.stop().get_token(),
          [console](const std::string& what, int64_t bytes) {
            return std::make_unique<MemberProgress>(console, what, bytes);
          },
          o.links == "follow" ? Links::follow : Links::refuse,
          std::max(memory_limit(run), kLeastHeadBytes), o.growing};
}

Capture read_capture(const CaptureOptions& o, const RunOptions& run, const Console& console) {
  const FactOverrides overrides = fact_overrides(o);
  const bool bare = !o.tensors.q.empty() || !o.tensors.k.empty() || !o.tensors.v.empty();
  if (bare && o.texts.pattern) throw usage_error("--pattern is for a CAPTURE");
  if (bare && !o.capture.empty()) {
    throw usage_error("give either CAPTURE (" + o.capture + ") or --q and --k, not both");
  }
  if (bare && (o.tensors.q.empty() || o.tensors.k.empty())) {
    throw usage_error(std::string("bare tensors need both --q and --k (") +
                      (o.tensors.q.empty() ? "--q" : "--k") + " is missing)");
  }
  if (!bare && o.capture.empty()) throw usage_error("a CAPTURE is needed, or --q and --k");
  const ReadControl control = read_control(o, run, console);
  return bare ? Capture::from_tensors(o.tensors, overrides, control)
              : Capture::open(o.capture, overrides, control);
}

Capture open_any_capture(const CaptureOptions& o, const RunOptions& run, const Console& console) {
  if (!o.tensors_note.empty()) console.say("note: " + one_line(o.tensors_note));
  Capture capture = read_capture(o, run, console);
  for (const std::string& line : capture.warnings()) console.warn("warning: " + line);
  for (const std::string& note : capture.notes()) console.say("note: " + note);
  return capture;
}

Capture open_capture(const CaptureOptions& o, const RunOptions& run, const Console& console) {
  Capture capture = open_any_capture(o, run, console);
  require_computable(capture);
  const std::string unknown = not_understood_text(capture);
  if (!unknown.empty()) console.say("note: " + unknown);
  return capture;
}

void add_selection_options(CommandParser& command, SelectionOptions& o) {
  const std::string group = kSelectionOptions;
  const auto add = [&](const char* name, std::string& value, const char* text) {
    command.add_option(name, value, text).type_name("LIST").group(group);
  };
  add("--steps", o.steps, "denoising steps, as recorded");
  add("--layers", o.layers, "layers, as recorded");
  add("--heads", o.heads, "heads");
  add("--batch", o.batch, "batch items");
  add("--chunks", o.chunks, "pieces of a stream, as recorded");
  const auto add_names = [&](const char* name, std::vector<std::string>& values, const char* type,
                             const char* text) {
    return command.add_option(name, values, text)
        .type_name(type)
        .delimiter(',')
        .one_value_each()
        .group(group);
  };
  add_names("--branch", o.branches, "NAME", "guidance branches by name: cond, uncond, ...");
  add_names("--kind", o.kinds, "KIND", "{}").one_of(kind_names());
  add_names("--blocks", o.blocks, "NAME", "blocks of the model by name, * for any characters");
  add_names("--slots", o.slots, "NAME", "attentions within a block by name: attn1, audio_*, ...");
  add_names("--pick", o.pick, "HEADS",
            "of these the heads 3.1,12.7 (layer.head), 10:3.1 (step:layer.head) or\n"
            "refiner.0/attn.1 (block/slot.head)");
  command
      .add_option("--from", o.from,
                  "of these the heads that a file lists: a .json of heads, or of stats, mask or\n"
                  "diff, or a .csv or .h5 of stats")
      .type_name("FILE")
      .group(group);
  command
      .add_option("--where", o.where,
                  "of these the heads that a condition holds for, over their names and the\n"
                  "numbers of stats: 'class=temporal entropy<5 layer>=10'")
      .type_name("CONDITION")
      .group(group);
  add_cache_option(command, o.cache);
  command.after_parsing([&o] {
    if (o.where) HeadCondition::parse(*o.where, "--where");
    if (!o.from.empty()) o.listed = read_head_list(o.from);
  });
}

bool asks_for_numbers(const SelectionOptions& o) {
  return o.where && !o.holding && HeadCondition::parse(*o.where, "--where").asks_for_numbers();
}

namespace {

void add_condition(const SelectionOptions& o, CallSelection& selection) {
  if (!o.where) return;
  selection.condition_text = "--where " + *o.where;
  if (o.holding) {
    selection.condition = [holding = o.holding](const HeadName& name) {
      return holding->count(name) != 0;
    };
    return;
  }
  const HeadCondition condition = HeadCondition::parse(*o.where, "--where");
  if (condition.asks_for_numbers()) {
    throw usage_error(
        one_line(selection.condition_text) +
        ": compares numbers of heads, which stats finds in a capture; here heads have names alone "
        "(--from FILE takes the heads that a table of stats has)");
  }
  selection.condition = [condition](const HeadName& name) { return condition.holds({name}); };
}

}  // namespace

CallSelection parse_selection(const SelectionOptions& o) {
  std::vector<std::shared_ptr<const HeadSet>> sets;
  if (!o.pick.empty()) {
    std::vector<HeadPattern> picked;
    for (const std::string& text : o.pick) picked.push_back(HeadPattern::parse(text, "--pick"));
    sets.push_back(std::make_shared<const HeadSet>(std::move(picked), "--pick"));
  }
  if (o.listed) sets.push_back(o.listed);
  CallSelection selection{Selection::parse(o.steps, "--steps"),
                          Selection::parse(o.layers, "--layers"),
                          Selection::parse(o.heads, "--heads"),
                          Selection::parse(o.batch, "--batch"),
                          o.branches,
                          o.kinds,
                          o.blocks,
                          o.slots,
                          Selection::parse(o.chunks, "--chunks"),
                          std::move(sets)};
  add_condition(o, selection);
  return selection;
}

void require_equal_heads(std::span<const SelectedCall> calls, std::string_view what,
                         bool by_branch) {
  std::set<std::pair<const CallEntry*, std::string>> seen;
  for (const SelectedCall& selected : calls) {
    std::set<std::pair<const CallEntry*, std::string>> own;
    for (const int64_t item : selected.batch) {
      own.emplace(selected.call, by_branch ? branch_of(selected.call->id, item) : "");
    }
    for (const auto& each : own) {
      if (seen.insert(each).second) continue;
      throw usage_error(fmt::format(
          "{}: other heads are chosen of some of its batch items than of others, for which {} has "
          "no room: choose items with --batch",
          one_line(selected.call->problem->name()), what));
    }
  }
}

void add_run_options(CommandParser& command, RunOptions& o) {
  const std::string group = "Computation";
  command
      .add_option("--memory", o.memory,
                  "memory to work in: 256MiB, 4GB, 50% of what is free\n"
                  "(default: the smaller of 2 GiB and half of what is free)")
      .type_name("SIZE")
      .group(group);
  command.add_option("--threads", o.threads, "worker threads (default: one a core)")
      .in_range(1, 4096)
      .type_name("N")
      .group(group);
  command
      .add_option("--backend", o.backend,
                  "auto, reference, cpu or cuda, or one of these by the instructions that an "
                  "export names:\n{}")
      .words(backend_names())
      .type_name("NAME")
      .group(group);
  command
      .add_option("--vram", o.vram,
                  "device memory for cuda to work in: 8GiB, 50% of what is free there\n"
                  "(default: 90% of what is free)")
      .type_name("SIZE")
      .group(group);
  command
      .add_flag("--tf32", o.tf32,
                "cuda multiplies float32 tensors on its tensor cores: faster, 10 bits of each")
      .group(group);
  command
      .add_flag("--profile", o.profile,
                "time every launch on the device, and print a table of them in the end")
      .group(group);
}

int64_t memory_limit(const RunOptions& o) {
  const int64_t available = available_memory();
  if (o.memory.empty()) return std::min(int64_t{2} << 30, available / 2);
  return parse_size(o.memory, "--memory", available);
}

int64_t counted_bytes(const Capture& capture) {
  return std::max<int64_t>(0, capture.held_bytes() - kFreeCaptureBytes);
}

MemoryRoom memory_beside(const Capture& capture, const RunOptions& o) {
  const int64_t limit = memory_limit(o);
  const int64_t calls = counted_bytes(capture);
  if (limit > calls) return {limit - calls, calls};
  throw Error(ErrorCode::resource, "--memory " + format_bytes(limit) + ": the " +
                                       std::to_string(capture.calls().size()) + " calls of " +
                                       one_line(capture.path().string()) + " take " +
                                       format_bytes(capture.held_bytes()) +
                                       " by themselves (a larger --memory, or a " +
                                       "capture of fewer calls)");
}

OrderedJson selection_json(const SelectionOptions& o) {
  OrderedJson json{{"steps", o.steps}, {"layers", o.layers},   {"heads", o.heads},
                   {"batch", o.batch}, {"branch", o.branches}, {"kind", o.kinds}};
  if (!o.blocks.empty()) json["blocks"] = o.blocks;
  if (!o.slots.empty()) json["slots"] = o.slots;
  if (o.chunks != "all") json["chunks"] = o.chunks;
  if (!o.pick.empty()) json["pick"] = o.pick;
  const auto digest = [](int64_t heads, const std::string& names) {
    return fmt::format("{} heads {:016x}", heads, checksum64(std::as_bytes(std::span(names))));
  };
  // The list itself, not the file's name, decides which heads there are.
  if (o.listed) json["from"] = digest(std::ssize(*o.listed), o.listed->text());
  if (o.where) json["where"] = *o.where;
  if (o.holding) {
    std::string names;
    for (const HeadName& name : *o.holding) names += HeadPattern::of(name).facts() + "\n";
    json["where_heads"] = digest(std::ssize(*o.holding), names);
  }
  return json;
}

}  // namespace attnscope
