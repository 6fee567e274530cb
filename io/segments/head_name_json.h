#pragma once

#include <string>

#include "core/problem/head_name.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Which head that is: {"step", "layer" (null outside the main stack), "branch", "kind", "batch",
/// "head", "block", "slot"}, null where nobody recorded it, and "chunk", "forward", "of_step" and
/// "call" where the capture has them. parse_name_json() takes it.
OrderedJson name_json(const HeadName& name);
/// Which call that is: name_json() without "batch" and "head".
OrderedJson call_name_json(const HeadName& name);

/// Adds the part of a name that is no step, layer, branch or kind: "block", "slot" and what
/// follows.
void add_place(OrderedJson& json, const ModelPlace& place);

/// Adds what is stated of a call's forward: "forward", "of_step", "call".
void add_forward(OrderedJson& json, const CallForward& forward);
/// Takes what add_forward() added, of either kind of JSON.
template <typename Json>
CallForward parse_forward(const Json& json) {
  CallForward forward;
  for (const ForwardFact& fact : kForwardFacts) {
    if (json.contains(fact.name)) json.at(fact.name).get_to(forward.*fact.number);
  }
  return forward;
}

/// Reads back the name that name_json() wrote, from either kind of JSON: null is what nobody
/// recorded, or a layer outside the main stack. Throws nlohmann's exceptions where it is none.
template <typename Json>
HeadName parse_name_json(const Json& json) {
  HeadName name;
  const auto take = [&](const char* key, auto& value) {
    if (!json.at(key).is_null()) json.at(key).get_to(value);
    return json.at(key).is_null();
  };
  const auto take_some = [&](const char* key, auto& value) {
    if (json.contains(key) && !json.at(key).is_null()) json.at(key).get_to(value);
  };
  take_some("block", name.place.block);
  take_some("slot", name.place.slot);
  take_some("chunk", name.place.chunk);
  name.place.forward = parse_forward(json);
  Unrecorded& unrecorded = name.place.unrecorded;
  unrecorded.step = take("step", name.step);
  unrecorded.layer = take("layer", name.layer);
  if (unrecorded.layer && !name.place.block.empty()) {
    unrecorded.layer = false;
    name.layer = kNoLayer;
  }
  name.branch = "all";
  unrecorded.branch = take("branch", name.branch);
  json.at("kind").get_to(name.kind);
  json.at("batch").get_to(name.batch);
  json.at("head").get_to(name.head);
  return name;
}

}  // namespace attnscope
