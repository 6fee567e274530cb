#include "io/relabel/call_labels.h"

#include <nlohmann/json.hpp>

namespace attnscope {

OrderedJson labels_json(const CallLabels& labels) {
  OrderedJson json = OrderedJson::object();
  if (labels.step) json["step"] = *labels.step;
  if (labels.layer) json["layer"] = *labels.layer;
  if (!labels.branches.empty()) json["branches"] = labels.branches;
  for (const ForwardFact& fact : kForwardFacts) {
    if (labels.forward.*fact.number != fact.none) json[fact.name] = labels.forward.*fact.number;
  }
  return json;
}

}  // namespace attnscope
