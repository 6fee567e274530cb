#include "io/segments/head_name_json.h"

#include <nlohmann/json.hpp>

#include "io/files/json_types.h"

namespace attnscope {

void add_forward(OrderedJson& json, const CallForward& forward) {
  for (const ForwardFact& fact : kForwardFacts) {
    if (forward.*fact.number != fact.none) json[fact.name] = forward.*fact.number;
  }
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
  if (name.place.is_recorded()) {
    json["block"] = name.place.block;
    json["slot"] = name.place.slot;
  }
  if (name.place.has_chunk()) json["chunk"] = name.place.chunk;
  add_forward(json, name.place.forward);
  return json;
}

}  // namespace attnscope
