#include "io/capture/capture.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/capture/content_hash.h"
#include "io/capture/selection_share.h"
#include "io/files/checksum.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"
#include "io/segments/segment_json.h"

namespace attnscope {
namespace {

/// A token map with its padding.
Json segment_facts(const TokenGrid& tokens) {
  Json facts = segments_json(tokens);
  for (size_t i = 0; i < tokens.segments().size(); ++i) {
    const TokenSegment& segment = tokens.segments()[i];
    if (!segment.valid.empty()) facts[i]["valid"] = segment.valid;
    if (segment.valid_tokens) facts[i]["valid_tokens"] = *segment.valid_tokens;
    if (segment.cells) facts[i]["cells"] = *segment.cells;
  }
  return facts;
}

/// The facts that decide a call's maps and how an export describes them.
std::string canonical_facts(const SelectedCall& selected) {
  const CallEntry& call = *selected.call;
  const AttentionProblem& p = *call.problem;
  Json json;
  json["step"] = call.id.step;
  json["layer"] = call.id.layer;
  json["layer_name"] = call.layer_name;
  json["kind"] = kind_name(call.id.kind);
  // Captures without them keep their hashes.
  if (call.id.place.is_recorded()) json["place"] = {call.id.place.block, call.id.place.slot};
  if (call.id.place.has_chunk()) json["chunk"] = call.id.place.chunk;
  if (const CallForward& forward = call.id.place.forward; forward.is_stated()) {
    json["forward"] = {forward.forward, forward.of_step, forward.call};
  }
  if (call.id.place.unrecorded.any()) json["unrecorded"] = call.id.place.unrecorded.text();
  json["branches"] = call.id.branches;
  json["batch"] = selected.batch;
  json["heads"] = selected.heads;
  json["scale"] = one_or_list<Json>(p.scales().each());
  json["score"] = score_name(p.score());
  json["mask"] = p.mask().identity();
  if (!p.sinks().is_none()) {
    json["sinks"] = {p.sinks().shape(), checksum64(std::as_bytes(p.sinks().logits()))};
  }
  // Elements alone do not tell how the tensor broadcasts.
  if (call.mask && call.mask_fact && call.mask_fact->is_second_format()) {
    const auto shape = call.mask->shape();
    json["mask_shape"] = std::vector<int64_t>(shape.begin(), shape.end());
  }
  json["query_grid"] = {p.query_tokens().grid_text(), p.query_tokens().text_text()};
  json["key_grid"] = {p.key_tokens().grid_text(), p.key_tokens().text_text()};
  json["text_valid"] = p.key_tokens().text_valid();
  for (const auto& [name, tokens] :
       {std::pair("query_segments", &p.query_tokens()), {"key_segments", &p.key_tokens()}}) {
    if (tokens->has_map()) json[name] = segment_facts(*tokens);
  }
  json["layout"] = layout_name(p.q().layout());
  if (!call.codes.empty()) json["codes"] = call.codes;
  json["tokens"] = call.tokens;
  json["timestep"] = call.timestep ? Json(*call.timestep) : Json();
  json["q_state"] = call.q_state;
  json["head_offset"] = call.head_offset;
  json["model"] = call.model;
  json["prompt"] = call.prompt;
  for (const HeadTensor* tensor : {&p.q(), &p.k()}) {
    const auto shape = tensor->source().shape();
    json["tensors"].push_back(
        {dtype_name(tensor->source().dtype()), std::vector<int64_t>(shape.begin(), shape.end())});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_state(ContentHash& hash, const FileState& state) {
  hash.add(std::to_string(state.identity.device) + " " + std::to_string(state.identity.number) +
           " " + std::to_string(state.size) + " " + std::to_string(state.modified_ns));
}

}  // namespace

std::vector<std::string> Capture::call_stamps() const {
  std::map<std::filesystem::path, FileState> shared = inputs_->states();
  std::map<std::filesystem::path, FileState> own;
  for (const CallEntry& call : calls_) {
    if (auto node = shared.extract(call.file)) own.insert(std::move(node));
  }
  // Its facts are those of the calls: it grows while a model is recorded.
  shared.erase(path_ / "capture.json");
  std::vector<std::string> stamps;
  for (const CallEntry& call : calls_) {
    ContentHash hash{std::stop_token()};
    SelectedCall all{&call, {}, {}};
    hash.add(canonical_facts(all));
    if (const auto found = own.find(call.file); found != own.end()) add_state(hash, found->second);
    for (const auto& [path, state] : shared) add_state(hash, state);
    for (const std::string& scales : call.scale_names) hash.add(scales);
    stamps.push_back(hash.hex());
  }
  return stamps;
}

std::vector<std::string> Capture::call_hashes(const std::vector<SelectedCall>& selected,
                                              bool with_values, const std::stop_token& stop) const {
  require_unchanged();
  std::vector<std::string> hashes;
  for (const SelectedCall& call : selected) {
    ContentHash hash(stop);
    const AttentionProblem& problem = *call.call->problem;
    hash.add(canonical_facts(call));
    hash.add(problem.q().source());
    hash.add(problem.k().source());
    if (call.call->mask) hash.add(*call.call->mask);
    if (with_values && problem.v()) hash.add(problem.v().source());
    hashes.push_back(hash.hex());
  }
  require_unchanged();
  return hashes;
}

std::string join_call_hashes(const std::vector<std::string>& hashes) {
  if (hashes.size() == 1) return hashes.front();
  ContentHash hash{std::stop_token()};
  for (const std::string& call : hashes) hash.add(call);
  return hash.hex();
}

std::string Capture::content_hash(const std::vector<SelectedCall>& selected, bool with_values,
                                  std::stop_token stop) const {
  return join_call_hashes(call_hashes(selected, with_values, stop));
}

std::string plan_hash(const std::vector<SelectedCall>& selected, const std::string& asked_for) {
  ContentHash hash{std::stop_token()};
  hash.add(asked_for);
  for (const SelectedCall& call : selected) hash.add(canonical_facts(call));
  return hash.hex();
}

}  // namespace attnscope
