#include "io/segments/head_name_json.h"

#include <nlohmann/json.hpp>

namespace attnscope {

nlohmann::ordered_json name_json(const HeadName& name) {
  using Json = nlohmann::ordered_json;
  const Unrecorded& unrecorded = name.place.unrecorded;
  const bool no_layer = unrecorded.layer || name.layer == kNoLayer;
  Json json{{"step", unrecorded.step ? Json() : Json(name.step)},
            {"layer", no_layer ? Json() : Json(name.layer)},
            {"branch", unrecorded.branch ? Json() : Json(name.branch)},
            {"kind", name.kind},
            {"batch", name.batch},
            {"head", name.head}};
  if (name.place.is_recorded()) {
    json["block"] = name.place.block;
    json["slot"] = name.place.slot;
  }
  if (name.place.has_chunk()) json["chunk"] = name.place.chunk;
  return json;
}

}  // namespace attnscope
