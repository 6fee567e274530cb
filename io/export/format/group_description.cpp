#include "io/export/format/group_description.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace attnscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

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

OrderedJson call_description_json(const CallDescription& call) {
  OrderedJson json{{"step", call.name.step},
                   {"layer", call.name.layer},
                   {"branch", call.name.branch},
                   {"kind", call.name.kind},
                   {"block", call.name.place.block},
                   {"slot", call.name.place.slot},
                   {"chunk", call.name.place.chunk},
                   {"timestep", call.timestep},  // NaN is null
                   {"scale", call.scale},
                   {"head_dim", call.head_dim},
                   {"head_offset", call.head_offset},
                   {"num_queries", call.num_queries}};
  for (const auto& [name, member] : kTexts) json[name] = call.*member;
  if (call.queries) json["queries"] = *call.queries;
  if (call.keys) json["keys"] = *call.keys;
  return json;
}

CallDescription parse_call_description(const OrderedJson& json) {
  CallDescription call;
  json.at("step").get_to(call.name.step);
  json.at("layer").get_to(call.name.layer);
  json.at("branch").get_to(call.name.branch);
  json.at("kind").get_to(call.name.kind);
  json.at("block").get_to(call.name.place.block);
  json.at("slot").get_to(call.name.place.slot);
  json.at("chunk").get_to(call.name.place.chunk);
  if (!json.at("timestep").is_null()) json.at("timestep").get_to(call.timestep);
  json.at("scale").get_to(call.scale);
  json.at("head_dim").get_to(call.head_dim);
  json.at("head_offset").get_to(call.head_offset);
  json.at("num_queries").get_to(call.num_queries);
  for (const auto& [name, member] : kTexts) json.at(name).get_to(call.*member);
  if (json.contains("queries")) call.queries = json.at("queries").get<std::string>();
  if (json.contains("keys")) call.keys = json.at("keys").get<std::string>();
  return call;
}

}  // namespace attnscope
