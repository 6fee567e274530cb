#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/left_out_names.h"
#include "cli/common/unknown_state.h"
#include "cli/run/capture_check.h"
#include "cli/run/head_where.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/capture/capture_copy.h"
#include "io/capture/capture_folder.h"
#include "io/capture/capture_guard.h"
#include "io/capture/copy_additions.h"
#include "io/capture/rank_folders.h"
#include "io/capture/selection_share.h"
#include "io/export/format/export_part_json.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"
#include "io/rank_parts/stitch.h"
#include "io/stream_chunks/join_chunks.h"

namespace attnscope {
namespace {

struct ConvertOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  std::string out;
  std::string tokens;
  std::string frames;
  std::string shard;
  bool alone = false;
  bool stitch = false;
  bool no_values = false;
  bool dry_run = false;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

/// The latent frames that all calls with a grid have.
int64_t latent_frames(const std::vector<SelectedCall>& calls) {
  int64_t frames = 0;
  for (const SelectedCall& s : calls) {
    const TokenGrid& grid = s.call->problem->query_tokens();
    if (!grid.has_grid()) continue;
    if (frames != 0 && frames != grid.frames()) {
      throw usage_error(fmt::format("--video-frames: the calls have {} and {} latent frames",
                                    frames, grid.frames()));
    }
    frames = grid.frames();
  }
  if (frames == 0) throw usage_error("--video-frames: no call has a grid, so nothing has frames");
  return frames;
}

/// The pieces of streams among the calls, joined; says what is missing, and what cannot be joined.
JoinedChunks stitch_chunks(const std::vector<SelectedCall>& calls, const Console& console) {
  const bool any = std::any_of(calls.begin(), calls.end(),
                               [](const SelectedCall& s) { return s.call->id.place.has_chunk(); });
  if (!any) throw usage_error("--stitch: no selected call is a piece of a stream (the fact chunk)");
  JoinedChunks joined = join_chunks(calls, console.stop().get_token());
  for (const std::string& line : joined.refusals) console.warn("warning: " + one_line(line));
  for (const std::string& line : joined.notes) console.say("note: " + one_line(line));
  if (joined.calls.empty()) throw Error(ErrorCode::file, "--stitch: no call is left to write");
  return joined;
}

CaptureCopy describe_copy(const ConvertOptions& o, const Capture& capture,
                          std::vector<SelectedCall> calls) {
  CaptureCopy copy;
  copy.capture = &capture;
  copy.calls = std::move(calls);
  copy.values = !o.no_values;
  if (!o.tokens.empty()) copy.tokens = read_token_file(o.tokens);
  if (!o.frames.empty()) copy.frames = frame_pictures(o.frames, latent_frames(copy.calls));
  return copy;
}

/// How much is written: `heads` of all batch items, `bytes` of tensors.
struct ConvertSize {
  int64_t calls = 0, heads = 0, bytes = 0;

  std::string text() const {
    return fmt::format("{} call{}, {} head{}, {}", calls, calls == 1 ? "" : "s", heads,
                       heads == 1 ? "" : "s", format_bytes(bytes));
  }
};

/// Leaves one part of the calls to write.
void keep_share(const ConvertOptions& o, PlanShare share, CaptureCopy& copy) {
  const OrderedJson options{
      {"tokens", copy.tokens}, {"frames", copy.frames.size()}, {"values", !o.no_values}};
  const SelectionShare own =
      share_selection(copy.calls, share, ShareUnit::copies,
                      plan_text("convert", options, copy.capture->path().filename().string()));
  copy.own = own.places();
  copy.part = part_json(own.part);
}

ConvertSize size_of(const CaptureCopy& copy, int64_t bytes) {
  ConvertSize size{0, 0, bytes};
  for (size_t c = 0; c < copy.calls.size(); ++c) {
    const bool is_own = !copy.own || std::find(copy.own->begin(), copy.own->end(),
                                               static_cast<int64_t>(c)) != copy.own->end();
    if (!is_own) continue;
    ++size.calls;
    size.heads += static_cast<int64_t>(copy.calls[c].batch.size() * copy.calls[c].heads.size());
  }
  return size;
}

/// Prints the sizes of the capture that was or, with --dry-run, would be written.
void print_convert_json(const ConvertOptions& o, const ConvertSize& size) {
  OrderedJson json{{"format", "attnscope-convert/1"}};
  json["out"] = o.out;
  json["written"] = !o.dry_run;
  json["calls"] = size.calls;
  json["heads"] = size.heads;
  json["payload_bytes"] = size.bytes;
  add_left_out(json, o.capture);
  print_json(json, true);
}

/// Checks the target and says the notes, then has `write` write, or not (--dry-run).
int convert(const ConvertOptions& o, const Console& console, const ConvertSize& size,
            const std::vector<std::filesystem::path>& inputs, const std::vector<std::string>& notes,
            const std::function<void(const CopyControl&)>& write) {
  check_capture_target(o.out, {.force = o.force, .bytes = size.bytes, .inputs = inputs});
  for (const std::string& note : notes) console.say("note: " + note);
  if (o.dry_run) {
    if (o.json) {
      print_convert_json(o, size);
    } else {
      fmt::print("{}\n", size.text());
    }
    return kExitOk;
  }
  console.say(fmt::format("convert: {} to {}", size.text(), o.out));
  const InterruptWatch interrupts(console);
  Progress progress(console, "convert", size.bytes, 1, "B");
  CopyControl control;
  control.force = o.force;
  control.stop = interrupts.token();
  control.progress = [&](int64_t written) { progress.update(written); };
  write(control);
  if (o.json) print_convert_json(o, size);
  return kExitOk;
}

/// The first option that was given but does not go with --stitch; empty: none.
std::string other_option(const ConvertOptions& o) {
  const CaptureOptions& c = o.capture;
  SelectionOptions all;
  all.cache = o.selection.cache;
  const std::pair<const char*, bool> given[] = {
      {"--q", !c.tensors.q.empty()},
      {"--k", !c.tensors.k.empty()},
      {"--v", !c.tensors.v.empty()},
      {"--score", c.score != "softmax"},
      {"--as", std::any_of(c.told.begin(), c.told.end(),
                           [](const std::string& told) { return !told.ends_with("=none"); })},
      {"--steps, --layers … (a selection)", !(o.selection == all)},
      {"--tokens", !o.tokens.empty()},
      {"--video-frames", !o.frames.empty()},
      {"--no-values", o.no_values}};
  for (const TextFact& fact : kTextFacts) {
    if (c.texts.*fact.value) return fact.option;
  }
  for (const auto& [name, is_given] : given) {
    if (is_given) return name;
  }
  return "";
}

/// True of a folder of several processes' folders: it has some, or no file of its own.
bool is_of_ranks(const std::filesystem::path& folder) {
  if (!rank_folders(folder).empty()) return true;
  std::error_code error;
  const std::filesystem::directory_iterator items(folder, error), end;
  return !error && std::none_of(items, end, [](const auto& item) {
    std::error_code ignored;
    return item.is_regular_file(ignored);
  });
}

int run_stitch(const ConvertOptions& o, const Console& console) {
  const std::string other = other_option(o);
  if (!other.empty()) {
    throw usage_error("--stitch joins all that the ranks recorded; " + other +
                      " is for the capture that it makes");
  }
  const PartSet parts = PartSet::open(o.capture.capture, fact_overrides(o.capture),
                                      read_control(o.capture, {}, console));
  std::vector<std::filesystem::path> inputs{o.capture.capture};
  for (const Capture& capture : parts.captures()) {
    const auto guarded = guarded_inputs(capture);
    inputs.insert(inputs.end(), guarded.begin(), guarded.end());
    for (const std::string& line : capture.warnings()) console.warn("warning: " + line);
  }
  const StitchSize size = check_stitch(parts, o.out);
  return convert(o, console, {size.calls, size.heads, size.bytes}, inputs, stitch_notes(parts),
                 [&](const CopyControl& control) { write_stitch(parts, o.out, control); });
}

int run_convert(const ConvertOptions& asked) {
  const Console console(asked.quiet);
  ConvertOptions o = asked;
  check_capture_name(o.out);
  refuse_tasks(o.shard, o.alone, o.out, o.stitch ? kOneProcess : kPartOfEach);
  const std::optional<PlanShare> share = chosen_share(o.shard, console);
  o.out = name_of_share(o.out, share);
  set_answer_out(o.out);
  if (o.stitch)
    refuse_shard(o.shard, "--stitch joins what several processes wrote, and is not cut");
  if (is_single_capture_file(o.out)) {
    refuse_shard(o.shard, "-o " + o.out + ": a part is a folder of calls");
  }
  if (o.stitch && is_of_ranks(o.capture.capture)) return run_stitch(o, console);
  const Capture capture = open_capture(o.capture, {}, console);
  check_capture(capture, o.capture, console);
  settle_where(o.selection, capture, {}, console, o.dry_run);
  std::vector<SelectedCall> calls = select_and_tell(capture, o.selection, console);
  require_equal_heads(calls, "a capture");
  JoinedChunks joined;
  if (o.stitch) {
    joined = stitch_chunks(calls, console);
    calls = joined.calls;
  }
  CaptureCopy copy = describe_copy(o, capture, std::move(calls));
  if (share) keep_share(o, *share, copy);
  const ConvertSize size = size_of(copy, check_capture_copy(copy, o.out));
  const int code =
      convert(o, console, size, guarded_inputs(capture), copy.notes(o.out),
              [&](const CopyControl& control) { write_capture_copy(copy, o.out, control); });
  // The calls that could be joined are written; a call that could not is no success.
  return joined.refusals.empty() ? code : kExitFailure;
}

}  // namespace

Command add_convert_command(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  ConvertOptions& o = *options;
  CommandParser command(app, "convert",
                        "write selected calls and heads, with what was not recorded, as a capture");
  add_capture_options(command, o.capture);
  command
      .add_option("-o", o.out,
                  "the new capture: a folder, or one call's file when it ends in .safetensors")
      .type_name("CAPTURE")
      .required();
  add_selection_options(command, o.selection);
  const std::string more = "What is written";
  command
      .add_option("--tokens", o.tokens,
                  "text tokens to record: a JSON list of strings (or one a batch item), or one a "
                  "line")
      .type_name("FILE")
      .group(more);
  command
      .add_option("--video-frames,--frames", o.frames,
                  "pictures to record: .png files, one a latent frame or those of the whole video")
      .type_name("DIR")
      .group(more);
  command.add_flag("--stitch", o.stitch,
                   "join the parts that the processes of one run wrote (CAPTURE is the folder of\n"
                   "rank-0-of-N ...) to the capture that one process would have recorded; else\n"
                   "the calls that are pieces of a stream, whose keys a cache keeps, to one");
  add_shard_option(command, o.shard);
  add_alone_option(command, o.alone);
  command.add_flag("--no-values", o.no_values, "leave out v and the output rows");
  command.add_flag("--dry-run", o.dry_run, "print the size; write nothing");
  command.add_flag("--force", o.force, "replace CAPTURE if it exists");
  command.add_flag("--json", o.json, "print what was written, or would be, as JSON");
  command.add_flag("--quiet", o.quiet, "no narration, no progress");
  command.footer(
      "Examples:\n"
      "  attnscope convert dump/ --steps 10 --layers 12 --heads 3,7 -o two-heads\n"
      "  attnscope convert dump/ --no-values -o less --dry-run\n"
      "  attnscope convert dump/ --tokens tokens.json --video-frames pictures/ -o complete\n"
      "  attnscope convert --stitch dump/ -o whole\n"
      "  attnscope convert dump/ --layers 12 -o cut-{shard} --shard 0/4   # then: attnscope merge\n"
      "  attnscope convert --q q.npy --k k.npy --preset cogvideox-5b -o call.safetensors");
  return {command, [options] { return run_convert(*options); }};
}

}  // namespace attnscope
