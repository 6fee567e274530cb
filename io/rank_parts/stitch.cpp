#include "io/rank_parts/stitch.h"

#include <algorithm>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/capture/capture_folder.h"
#include "io/capture/facts/call_facts.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"
#include "io/rank_parts/call_join.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// The forwards of the first rank, all of which make them together, and what any rank refused,
/// once.
ForwardLog joined_log(const PartSet& parts) {
  ForwardLog log = parts.captures().front().log();
  OrderedJson refused = OrderedJson::array();
  std::set<std::string> seen;
  for (const Capture& capture : parts.captures()) {
    const std::string& list = capture.log().refused_json;
    if (list.empty()) continue;
    for (OrderedJson& entry : OrderedJson::parse(list)) {
      if (seen.insert(entry.dump()).second) refused.push_back(std::move(entry));
    }
  }
  if (!refused.empty()) log.refused_json = refused.dump();
  return log;
}

/// capture.json without its pictures and calls.
OrderedJson catalogue_root(const PartSet& parts, bool second_format) {
  const Capture& first = parts.captures().front();
  OrderedJson root{{"format", second_format ? kCaptureFormat2 : kCaptureFormat}};
  bool one_model = true, one_prompt = true;
  for (const std::vector<RankCall>& call : parts.calls()) {
    one_model &= call.front().call->model == first.model();
    one_prompt &= call.front().call->prompt == first.prompt();
  }
  if (one_model && !first.model().empty()) root["model"] = first.model();
  if (one_prompt && !first.prompt().empty()) root["prompt"] = first.prompt();
  if (!first.extra().empty()) root["extra"] = OrderedJson::parse(first.extra());
  add_forward_log(root, joined_log(parts));
  return root;
}

std::vector<PictureToWrite> pictures_of(const PartSet& parts) {
  for (const Capture& capture : parts.captures()) {
    auto pictures = recorded_pictures(capture);
    if (!pictures.empty()) return pictures;
  }
  return {};
}

std::vector<fs::path> files_of(const PartSet& parts) {
  std::vector<fs::path> files;
  for (const Capture& capture : parts.captures()) {
    files.insert(files.end(), capture.files().begin(), capture.files().end());
  }
  return files;
}

/// Throws where `out` is one of the inputs, which must not be replaced.
void check_not_an_input(const PartSet& parts, const fs::path& out) {
  std::error_code error;
  for (const Capture& capture : parts.captures()) {
    const fs::path folder = fs::absolute(capture.path(), error);
    if (fs::equivalent(folder, out, error) || fs::equivalent(folder.parent_path(), out, error)) {
      throw file_error(out.string(), "", "is what is read, and is not replaced");
    }
  }
}

/// Throws where what was written is no capture: where the ranks' facts of the whole do not fit.
void require_opens(const fs::path& written, const PartSet& parts) {
  const std::string ranks = parts.captures().front().path().string() + " and the others";
  try {
    const Capture capture = Capture::open(written);
    if (capture.calls_left_out() == 0) return;
    throw file_error(written.string(), "", capture.warnings().front());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    throw file_error(ranks, "", std::string("do not make a capture: ") + error.what());
  }
}

}  // namespace

StitchSize check_stitch(const PartSet& parts, const fs::path& out) {
  if (is_single_capture_file(out) && parts.calls().size() != 1) {
    throw usage_error("-o " + out.string() +
                      ": a .safetensors file holds one call, and there are " +
                      std::to_string(parts.calls().size()) + ": give the name of a folder");
  }
  const Capture& first = parts.captures().front();
  for (const Capture& capture : parts.captures()) {
    if (capture.extra() == first.extra()) continue;
    throw file_error(
        capture.path().string(), "extra",
        "is " + capture.extra() + ", but " + first.path().string() + " says " + first.extra());
  }
  check_not_an_input(parts, out);
  StitchSize size;
  for (const std::vector<RankCall>& call : parts.calls()) {
    const CallToWrite joined = join_call(call);
    const auto bytes = checked_add(size.bytes, joined.bytes());
    if (!bytes) throw usage_error("the capture would take more than 2^63 bytes");
    size.bytes = *bytes;
    size.heads += joined.tensors.front().shape[0] * joined.tensors.front().shape[1];
    size.second_format |= joined.facts["format"] == kCaptureFormat2;
    ++size.calls;
  }
  return size;
}

void write_stitch(const PartSet& parts, const fs::path& out, const CopyControl& control) {
  const StitchSize size = check_stitch(parts, out);
  std::vector<std::shared_ptr<const InputSet>> inputs;
  for (const Capture& capture : parts.captures()) inputs.push_back(capture.inputs());
  CaptureWriter writer(control, std::move(inputs),
                       [&](const fs::path& part) { require_opens(part, parts); });
  check_capture_target(out,
                       {.force = control.force, .bytes = size.bytes, .inputs = files_of(parts)});
  if (is_single_capture_file(out)) {
    writer.write_file(join_call(parts.calls().front()), out);
    return;
  }
  writer.write_folder({catalogue_root(parts, size.second_format), pictures_of(parts),
                       parts.calls().size(), [&](size_t i) { return join_call(parts.calls()[i]); }},
                      out);
}

std::vector<std::string> stitch_notes(const PartSet& parts) {
  std::set<std::string> lines;
  for (const Capture& capture : parts.captures()) {
    for (const std::string& key : capture.unknown_keys()) lines.insert("not carried over: " + key);
    for (const CallEntry& call : capture.calls()) {
      for (const std::string& key : call.unknown_keys) lines.insert("not carried over: " + key);
    }
  }
  return {lines.begin(), lines.end()};
}

}  // namespace attnscope
