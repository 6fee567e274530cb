#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/capture_check.h"
#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/capture/capture_copy.h"
#include "io/capture/capture_folder.h"
#include "io/capture/copy_additions.h"
#include "io/capture/synthetic_capture.h"
#include "io/files/output_file.h"
#include "io/stream/join_chunks.h"

namespace attnscope {
namespace {

struct ConvertOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  std::string out;
  std::string tokens;
  std::string frames;
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
      throw usage_error(
          fmt::format("--frames: the calls have {} and {} latent frames", frames, grid.frames()));
    }
    frames = grid.frames();
  }
  if (frames == 0) throw usage_error("--frames: no call has a grid, so nothing has frames");
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

int64_t count_heads(const CaptureCopy& copy) {
  int64_t heads = 0;
  for (const SelectedCall& s : copy.calls) {
    heads += static_cast<int64_t>(s.batch.size() * s.heads.size());
  }
  return heads;
}

/// What is or was written.
void print_convert_json(const ConvertOptions& o, const CaptureCopy& copy, int64_t bytes) {
  nlohmann::ordered_json json{{"format", "attnscope-convert/1"}};
  json["out"] = o.out;
  json["written"] = !o.dry_run;
  json["calls"] = copy.calls.size();
  json["heads"] = count_heads(copy);
  json["payload_bytes"] = bytes;
  print_json(json, true);
}

std::string size_text(const CaptureCopy& copy, int64_t bytes) {
  const int64_t heads = count_heads(copy);
  return fmt::format("{} call{}, {} head{}, {}", copy.calls.size(),
                     copy.calls.size() == 1 ? "" : "s", heads, heads == 1 ? "" : "s",
                     format_bytes(bytes));
}

int run_convert(const ConvertOptions& o) {
  const Console console(o.quiet);
  const Capture capture = open_capture(o.capture, {}, console);
  check_capture(capture, o.capture, console);
  std::vector<SelectedCall> calls = capture.select(parse_selection(o.selection));
  JoinedChunks joined;
  if (o.stitch) {
    joined = stitch_chunks(calls, console);
    calls = joined.calls;
  }
  // What could be joined is written; what could not is no success.
  const int done = joined.refusals.empty() ? kExitOk : kExitFailure;
  const CaptureCopy copy = describe_copy(o, capture, std::move(calls));
  const int64_t bytes = check_capture_copy(copy, o.out);
  if (is_single_capture_file(o.out)) {
    OutputFile::check_target(o.out, {.force = o.force, .inputs = capture.files()});
  } else {
    CaptureFolder::check_target(o.out, o.force);
  }
  for (const std::string& note : copy.notes()) console.say("note: " + note);
  if (o.dry_run) {
    if (o.json) {
      print_convert_json(o, copy, bytes);
    } else {
      fmt::print("{}\n", size_text(copy, bytes));
    }
    return done;
  }
  console.say(fmt::format("convert: {} to {}", size_text(copy, bytes), o.out));
  const InterruptWatch interrupts(console);
  Progress progress(console, "convert", bytes, 1, "B");
  CopyControl control;
  control.force = o.force;
  control.stop = interrupts.token();
  control.progress = [&](int64_t written) { progress.update(written); };
  write_capture_copy(copy, o.out, control);
  if (o.json) print_convert_json(o, copy, bytes);
  return done;
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
      .add_option("--frames", o.frames,
                  "pictures to record: .png files, one a latent frame or those of the whole video")
      .type_name("DIR")
      .group(more);
  command.add_flag("--stitch", o.stitch,
                   "join the calls that are pieces of a stream, whose keys a cache keeps, to one");
  command.add_flag("--no-values", o.no_values, "leave out v and the output rows");
  command.add_flag("--dry-run", o.dry_run, "print the size; write nothing");
  command.add_flag("--force", o.force, "replace CAPTURE if it exists");
  command.add_flag("--json", o.json, "print what was written, or would be, as JSON");
  command.add_flag("--quiet", o.quiet, "no narration, no progress");
  command.footer(
      "Examples:\n"
      "  attnscope convert dump/ --steps 10 --layers 12 --heads 3,7 -o two-heads\n"
      "  attnscope convert dump/ --no-values -o less --dry-run\n"
      "  attnscope convert dump/ --tokens tokens.json --frames pictures/ -o complete\n"
      "  attnscope convert --q q.npy --k k.npy --preset cogvideox-5b -o call.safetensors");
  return {command, [options] { return run_convert(*options); }};
}

}  // namespace attnscope
