#include "io/capture/capture.h"

#include <nlohmann/json.hpp>

#include "io/capture/content_hash.h"

namespace attnscope {
namespace {

/// The facts that decide a call's maps and how an export describes them.
std::string canonical_facts(const SelectedCall& selected) {
  const CallEntry& call = *selected.call;
  const AttentionProblem& p = *call.problem;
  nlohmann::json json;
  json["step"] = call.id.step;
  json["layer"] = call.id.layer;
  json["layer_name"] = call.layer_name;
  json["kind"] = kind_name(call.id.kind);
  json["branches"] = call.id.branches;
  json["batch"] = selected.batch;
  json["heads"] = selected.heads;
  json["scale"] = p.scale();
  json["score"] = score_name(p.score());
  json["mask"] = p.mask().describe();
  // Elements alone do not tell how the tensor broadcasts.
  if (call.mask && call.mask_fact && call.mask_fact->is_second_format()) {
    const auto shape = call.mask->shape();
    json["mask_shape"] = std::vector<int64_t>(shape.begin(), shape.end());
  }
  json["query_grid"] = {p.query_tokens().grid_text(), p.query_tokens().text_text()};
  json["key_grid"] = {p.key_tokens().grid_text(), p.key_tokens().text_text()};
  json["text_valid"] = p.key_tokens().text_valid();
  json["layout"] = layout_name(p.q().layout());
  json["tokens"] = call.tokens;
  json["timestep"] = call.timestep ? nlohmann::json(*call.timestep) : nlohmann::json();
  json["q_state"] = call.q_state;
  json["head_offset"] = call.head_offset;
  json["model"] = call.model;
  json["prompt"] = call.prompt;
  for (const HeadTensor* tensor : {&p.q(), &p.k()}) {
    const auto shape = tensor->source().shape();
    json["tensors"].push_back(
        {dtype_name(tensor->source().dtype()), std::vector<int64_t>(shape.begin(), shape.end())});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string Capture::content_hash(const std::vector<SelectedCall>& selected, bool with_values,
                                  std::stop_token stop) const {
  require_unchanged();
  ContentHash hash(std::move(stop));
  for (const SelectedCall& call : selected) {
    const AttentionProblem& problem = *call.call->problem;
    hash.add(canonical_facts(call));
    hash.add(problem.q().source());
    hash.add(problem.k().source());
    if (call.call->mask) hash.add(*call.call->mask);
    if (with_values && problem.v()) hash.add(problem.v().source());
  }
  require_unchanged();
  return hash.hex();
}

}  // namespace attnscope
