#include "io/segments/head_name_json.h"

#include <nlohmann/json.hpp>

#include "io/files/json_types.h"

namespace attnscope {

void add_forward(OrderedJson& json, const CallForward& forward) {
  for (const ForwardFact& fact : kForwardFacts) {
    if (forward.*fact.number != fact.none) json[fact.name] = forward.*fact.number;
  }
}

void add_place(OrderedJson& json, const ModelPlace& place) {
  const auto known = [](const std::string& text) {
    return text.empty() ? OrderedJson() : OrderedJson(text);
  };
  json["block"] = known(place.block);
  json["slot"] = known(place.slot);
  if (place.has_chunk()) json["chunk"] = place.chunk;
  add_forward(json, place.forward);
}

OrderedJson name_json(const HeadName& name) {
  const Unrecorded& unrecorded = name.place.unrecorded;
  const bool no_layer = unrecorded.layer || name.layer == kNoLayer;
  OrderedJson json{{"step", unrecorded.step ? OrderedJson() : OrderedJson(name.step)},
                   {"layer", no_layer ? OrderedJson() : OrderedJson(name.layer)},
                   {"branch", unrecorded.branch ? OrderedJson() : OrderedJson(name.branch)},
                   {"kind", name.kind},
                   {"batch", name.batch},
                   {"head", name.head}};
  add_place(json, name.place);
  return json;
}

OrderedJson call_name_json(const HeadName& name) {
  OrderedJson json = name_json(name);
  json.erase("batch");
  json.erase("head");
  return json;
}

}  // namespace attnscope
