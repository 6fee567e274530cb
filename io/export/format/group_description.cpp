#include "io/export/format/group_description.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "io/files/json_types.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// Null where nobody recorded it.
template <typename Value>
OrderedJson known(bool unrecorded, const Value& value) {
  return unrecorded ? OrderedJson() : OrderedJson(value);
}

/// Takes what known() made; true where it is null, which leaves `value` as it is.
template <typename Value>
bool take_known(const OrderedJson& json, Value& value) {
  if (!json.is_null()) json.get_to(value);
  return json.is_null();
}

/// The texts by the names of the attributes that hold them.
constexpr std::pair<const char*, std::string CallDescription::*> kTexts[] = {
    {"layer_name", &CallDescription::layer_name},
    {"score", &CallDescription::score},
    {"mask", &CallDescription::mask},
    {"grid", &CallDescription::grid},
    {"text", &CallDescription::text},
    {"model", &CallDescription::model},
    {"prompt", &CallDescription::prompt},
    {"q_dtype", &CallDescription::q_dtype},
    {"q_state", &CallDescription::q_state},
    {"backend", &CallDescription::backend}};

}  // namespace

std::string CallDescription::not_recorded() const {
  std::string names = name.place.unrecorded.text();
  if (model.empty()) names += names.empty() ? "model" : " model";
  return names;
}

OrderedJson call_description_json(const CallDescription& call) {
  const Unrecorded& unrecorded = call.name.place.unrecorded;
  OrderedJson json{{"step", known(unrecorded.step, call.name.step)},
                   {"layer", known(unrecorded.layer, call.name.layer)},
                   {"branch", known(unrecorded.branch, call.name.branch)},
                   {"kind", call.name.kind},
                   {"block", call.name.place.block},
                   {"slot", call.name.place.slot},
                   {"chunk", call.name.place.chunk},
                   {"timestep", call.timestep},  // NaN is null
                   {"scale", one_or_list(call.scale)},
                   {"head_dim", call.head_dim},
                   {"head_offset", call.head_offset},
                   {"num_queries", call.num_queries}};
  add_forward(json, call.name.place.forward);
  for (const auto& [name, member] : kTexts) json[name] = call.*member;
  json["model"] = known(call.model.empty(), call.model);
  if (call.queries) json["queries"] = *call.queries;
  if (call.keys) json["keys"] = *call.keys;
  if (!call.sinks.empty()) json["sinks"] = call.sinks;
  return json;
}

CallDescription parse_call_description(const OrderedJson& json) {
  CallDescription call;
  Unrecorded& unrecorded = call.name.place.unrecorded;
  unrecorded.step = take_known(json.at("step"), call.name.step);
  unrecorded.layer = take_known(json.at("layer"), call.name.layer);
  call.name.branch = "all";
  unrecorded.branch = take_known(json.at("branch"), call.name.branch);
  json.at("kind").get_to(call.name.kind);
  json.at("block").get_to(call.name.place.block);
  json.at("slot").get_to(call.name.place.slot);
  json.at("chunk").get_to(call.name.place.chunk);
  call.name.place.forward = parse_forward(json);
  if (!json.at("timestep").is_null()) json.at("timestep").get_to(call.timestep);
  const OrderedJson& scale = json.at("scale");
  call.scale =
      scale.is_array() ? scale.get<std::vector<double>>() : std::vector{scale.get<double>()};
  json.at("head_dim").get_to(call.head_dim);
  json.at("head_offset").get_to(call.head_offset);
  json.at("num_queries").get_to(call.num_queries);
  for (const auto& [name, member] : kTexts) take_known(json.at(name), call.*member);
  if (json.contains("queries")) call.queries = json.at("queries").get<std::string>();
  if (json.contains("keys")) call.keys = json.at("keys").get<std::string>();
  if (json.contains("sinks")) json.at("sinks").get_to(call.sinks);
  return call;
}

}  // namespace attnscope
