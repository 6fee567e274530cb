#include "io/capture/capture.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "io/capture/call/call_builder.h"
#include "io/capture/call/collected_call.h"
#include "io/capture/call/opened_call.h"
#include "io/capture/call/packed_sequences.h"
#include "io/capture/capture_location.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/capture/named_calls.h"
#include "io/files/input_set.h"

// A capture is opened in four stages, each a function from one value to the next: locate_capture
// tells where its calls stand (CaptureLocation), open_call_file, open_named_call and
// open_bare_tensors open one (OpenedCall), collect_facts adds what is told elsewhere
// (CollectedCall), and build_call makes the call (BuiltCall).

namespace attnscope {
namespace {

/// Of a call with its facts, problem, tensors and file, as measured; without the texts that it
/// recorded.
constexpr int64_t kCallBytes = 7 << 10;
/// Bytes of a word without its letters.
constexpr int64_t kWordBytes = sizeof(std::string);

BuiltCall make_call(OpenedCall call, const FactOverrides& overrides, const ReadControl& control) {
  return build_call(collect_facts(std::move(call), overrides), overrides, control);
}

ReadControl with_files(ReadControl control, std::shared_ptr<InputSet> files) {
  control.files = std::move(files);
  return control;
}

OpenedCall open_located(const std::variant<CaptureFile, NamedCall, PassedOver>& place,
                        const FactOverrides& overrides, const ReadControl& control) {
  if (const auto* file = std::get_if<CaptureFile>(&place)) {
    return open_call_file(*file, overrides, control);
  }
  return open_named_call(std::get<NamedCall>(place), overrides, control);
}

/// Adds the files that options name (masks, boundaries, scales) to those that are read.
void add_option_files(const FactOverrides& overrides, std::vector<std::filesystem::path>& files) {
  for (const TextFact& fact : kTextFacts) {
    const auto& value = overrides.*fact.value;
    if (value && fact.names_file(*value)) files.emplace_back(reference_file(*value));
  }
}

/// The file of each call, by the identity that tells it apart. Where a place is recorded, it tells
/// calls apart, whatever the layer is called.
using SeenCalls =
    std::map<std::tuple<int64_t, int64_t, std::string, CallKind, ModelPlace>, std::string>;

/// "--as layer": a fact of those that tell calls apart which --as told; empty: none.
std::string told_identity(const CallEntry& call) {
  for (const char* name : {"layer", "step", "branches", "kind", "block", "slot", "chunk"}) {
    const auto fact = call.facts.find(name);
    if (fact != call.facts.end() && fact->second.origin == kToldOrigin) {
      return told_option(name);
    }
  }
  return "";
}

/// Adds the calls to those that were seen. Throws Error(file) where two are the same; `hint` ends
/// the message. Where --as told what calls are, Error(usage).
SeenCalls check_unique(const std::vector<CallEntry>& calls, const std::string& hint,
                       SeenCalls seen = {}) {
  for (const CallEntry& call : calls) {
    const std::set<std::string> branches(call.id.branches.begin(), call.id.branches.end());
    for (const std::string& branch : branches) {
      const bool placed = !call.id.place.block.empty();
      const auto key = std::tuple(call.id.step, placed ? kNoLayer : call.id.layer, branch,
                                  placed ? CallKind::self : call.id.kind, call.id.place);
      const auto [known, fresh] = seen.emplace(key, call.file.string());
      if (fresh) continue;
      std::string call_is =
          call_words(call.id.step, call.id.layer, "branch " + branch,
                     "kind " + std::string(kind_name(call.id.kind)), call.id.place, ", ");
      const Unrecorded& unrecorded = call.id.place.unrecorded;
      if (unrecorded.any()) call_is += " (not recorded: " + unrecorded.text() + ")";
      const std::string told = told_identity(call);
      if (!told.empty()) {
        throw usage_error(told + " is told of every call, and " + call.file.string() + " and " +
                          known->second + " would both be " + call_is +
                          ": tell it of a capture of one call");
      }
      throw file_error(call.file.string(), "", call_is + " is also in " + known->second + hint);
    }
  }
  return seen;
}

/// Ascending by step, layer, forward, branch, kind and place.
void sort_calls(std::vector<CallEntry>& calls) {
  const auto key = [](const CallEntry& c) {
    // Before its name: f2 comes before f10.
    return std::tie(c.id.step, c.id.layer, c.id.place.forward, c.id.branches, c.id.kind,
                    c.id.place);
  };
  std::stable_sort(calls.begin(), calls.end(),
                   [&](const CallEntry& a, const CallEntry& b) { return key(a) < key(b); });
}

/// Tells once what holds of many calls alike: of "WHERE: WHAT" with one WHAT the first, and how
/// many more there are.
std::vector<std::string> told_once(const std::vector<std::string>& notes) {
  struct Told {
    std::string where;  ///< with its colon; empty where the note has none
    std::set<std::string> others;
  };
  std::vector<std::pair<std::string, Told>> told;
  std::map<std::string, size_t> numbers;
  for (const std::string& note : notes) {
    const size_t colon = note.find(": ");
    const std::string where = colon == std::string::npos ? "" : note.substr(0, colon);
    const std::string what = note.substr(where.size());
    const auto [place, is_new] = numbers.emplace(what, told.size());
    if (is_new) told.push_back({what, {where, {}}});
    Told& first = told[place->second].second;
    if (where != first.where) first.others.insert(where);
  }
  std::vector<std::string> lines;
  for (const auto& [what, of] : told) {
    const std::string more = of.others.empty() ? "" : fmt::format(" and {} more", of.others.size());
    lines.push_back(one_line(of.where + more + what));
  }
  return lines;
}

/// Tells which names were left out (`found`: of calls), as --as NAME=none or --ignore NAME asks,
/// and which are nowhere; takes those of the whole from `keys`.
void tell_left_out(const std::string& path, const FactOverrides& overrides,
                   std::set<std::string> found, std::vector<std::string>& keys,
                   std::vector<std::string>& notes, std::vector<std::string>& warnings) {
  const std::vector<std::string> names = left_out_names(overrides.told);
  std::erase_if(keys, [&](const std::string& key) {
    const auto name = std::find(names.begin(), names.end(), unknown_key(key));
    if (name != names.end()) found.insert(*name);
    return name != names.end();
  });
  std::string list;
  for (const std::string& name : found) list += (list.empty() ? "" : ", ") + name;
  if (!found.empty()) notes.push_back("left out as told: " + list);
  for (const std::string& name : names) {
    if (found.contains(name)) continue;
    warnings.push_back("--ignore " + name + ": " + path +
                       " has nothing of this name that could be left out");
  }
}

}  // namespace

int64_t Capture::held_bytes() const {
  int64_t bytes = 0;
  for (const CallEntry& call : calls_) {
    bytes += kCallBytes + static_cast<int64_t>(call.model.size() + call.prompt.size());
    for (const auto& [name, fact] : call.facts) bytes += static_cast<int64_t>(fact.json.size());
    for (const TokenGrid* tokens : {&call.problem->query_tokens(), &call.problem->key_tokens()}) {
      for (const TokenSegment& segment : tokens->segments()) bytes += segment.held_bytes();
    }
    for (const std::vector<std::string>& words : call.tokens) {
      for (const std::string& word : words) {
        bytes += kWordBytes + static_cast<int64_t>(word.size());
      }
    }
  }
  return bytes;
}

void Capture::require_unchanged() const { inputs_->require_unchanged(); }

std::shared_ptr<const InputFile> Capture::open_frame(const FrameFile& frame) const {
  return inputs_->open_unlinked(frame.file);
}

Capture Capture::open(const std::filesystem::path& path, const FactOverrides& overrides,
                      const ReadControl& given) {
  const auto inputs = std::make_shared<InputSet>(capture_folder(path), given.links);
  const ReadControl control = with_files(given, inputs);
  return of_location(locate_capture(path, overrides.pattern, control), inputs, overrides, control);
}

std::optional<Capture> Capture::open_added(const std::filesystem::path& path,
                                           std::span<const Capture* const> before,
                                           const FactOverrides& overrides,
                                           const ReadControl& given) {
  const auto inputs = std::make_shared<InputSet>(capture_folder(path), given.links);
  const ReadControl control = with_files(given, inputs);
  CaptureLocation location = locate_capture(path, overrides.pattern, control);
  if (location.named) {
    throw usage_error(path.string() +
                      ": cannot be followed: its files are told by their names, which do not say "
                      "when a call is complete");
  }
  std::set<std::filesystem::path> known;
  for (const Capture* capture : before) {
    for (const CallEntry& call : capture->calls()) known.insert(call.file);
  }
  std::erase_if(location.calls, [&](const auto& place) {
    const auto* file = std::get_if<CaptureFile>(&place);
    return file == nullptr || known.contains(file->path);
  });
  if (location.calls.empty() && location.frames == before.back()->frames()) return std::nullopt;
  Capture added = of_location(std::move(location), inputs, overrides, control);
  SeenCalls seen;
  for (const Capture* capture : before) seen = check_unique(capture->calls(), "", std::move(seen));
  check_unique(added.calls_, "", std::move(seen));
  return added;
}

Capture Capture::of_location(CaptureLocation location, const std::shared_ptr<InputSet>& inputs,
                             const FactOverrides& overrides, const ReadControl& control) {
  std::vector<std::string> warnings = std::move(location.warnings);
  std::vector<std::string> notes = std::move(location.notes);
  std::optional<Error> first_bad;
  std::set<std::string> left_out;
  Capture capture;
  for (const auto& place : location.calls) {
    if (const auto* passed = std::get_if<PassedOver>(&place)) {
      notes.push_back(passed->note);
      continue;
    }
    try {
      BuiltCall call = make_call(open_located(place, overrides, control), overrides, control);
      notes.insert(notes.end(), call.notes.begin(), call.notes.end());
      left_out.insert(call.left_out.begin(), call.left_out.end());
      capture.calls_.push_back(std::move(call.entry));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::file) throw;
      if (!first_bad) first_bad = error;
      ++capture.calls_left_out_;
      warnings.push_back("a call is left out: " + std::string(error.what()));
    }
  }
  // One bad call of many is no reason to show none.
  if (capture.calls_.empty() && first_bad) throw *first_bad;
  check_unique(capture.calls_,
               location.named ? ", by the pattern " + location.named->pattern +
                                    ": calls are told apart by {step}, {layer}, {branch} and {kind}"
                              : "");
  sort_calls(capture.calls_);
  tell_left_out(location.path.string(), overrides, std::move(left_out), location.unknown_keys,
                notes, warnings);
  inputs->begin_use();
  capture.inputs_ = inputs;
  capture.path_ = std::move(location.path);
  capture.files_ = std::move(location.files);
  add_option_files(overrides, capture.files_);
  capture.extra_ = std::move(location.extra);
  capture.log_ = std::move(location.log);
  capture.frames_ = std::move(location.frames);
  capture.named_ = std::move(location.named);
  capture.warnings_ = told_once(warnings);
  capture.notes_ = told_once(notes);
  capture.unknown_keys_ = std::move(location.unknown_keys);
  return capture;
}

Capture Capture::from_tensors(const BareTensors& tensors, const FactOverrides& overrides,
                              const ReadControl& given) {
  const auto inputs = std::make_shared<InputSet>();
  const ReadControl control = with_files(given, inputs);
  BuiltCall call = make_call(open_bare_tensors(tensors, overrides, control), overrides, control);
  inputs->begin_use();
  Capture capture;
  capture.inputs_ = inputs;
  capture.path_ = tensors.q;
  for (const std::string& reference : {tensors.q, tensors.k, tensors.v}) {
    if (!reference.empty()) capture.files_.emplace_back(reference_file(reference));
  }
  add_option_files(overrides, capture.files_);
  capture.calls_.push_back(std::move(call.entry));
  tell_left_out(tensors.q, overrides, {}, capture.unknown_keys_, call.notes, capture.warnings_);
  for (const std::string& note : call.notes) capture.notes_.push_back(one_line(note));
  return capture;
}

}  // namespace attnscope
