#include "io/export/format/export_part_json.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/export/format/export_spec.h"
#include "io/files/json_types.h"

namespace attnscope {
std::string export_part_json(const ExportSpec& spec) {
  const PlanPart& plan = spec.share->part;
  OrderedJson json{{"units", {plan.units.begin, plan.units.end, plan.all_units}}};
  OrderedJson& calls = json["calls"] = OrderedJson::array();
  for (const int64_t place : spec.share->places()) {
    const auto at = static_cast<size_t>(place);
    calls.push_back({place, at < spec.call_hashes.size() ? spec.call_hashes[at] : ""});
  }
  return json.dump();
}

OrderedJson part_json(const PlanPart& part) {
  return {{"shard", part.share.text()},
          {"plan_hash", part.plan_hash},
          {"part",
           {{"units", {part.units.begin, part.units.end, part.all_units}},
            {"calls", OrderedJson::array()}}}};
}

OrderedJson part_json(const PlanPart& part, const std::vector<int64_t>& places,
                      const std::vector<std::string>& call_hashes) {
  OrderedJson json = part_json(part);
  for (const int64_t place : places) {
    json["part"]["calls"].push_back({place, call_hashes[static_cast<size_t>(place)]});
  }
  return json;
}

StoredPart parse_export_part(const std::string& shard, const std::string& plan_hash,
                             const std::string& part, const std::string& file) {
  try {
    StoredPart stored;
    const OrderedJson json = OrderedJson::parse(part);
    const OrderedJson& units = json.at("units");
    stored.plan = {PlanShare::parse(shard, "shard"),
                   plan_hash,
                   {units.at(0).get<int64_t>(), units.at(1).get<int64_t>()},
                   units.at(2).get<int64_t>()};
    for (const OrderedJson& call : json.at("calls")) {
      stored.calls.push_back(call.at(0).get<int64_t>());
      stored.call_hashes.push_back(call.at(1).get<std::string>());
    }
    const IndexRange own = stored.plan.units;
    if (own.begin >= 0 && own.begin <= own.end && own.end <= stored.plan.all_units) return stored;
  } catch (const OrderedJson::exception&) {
  } catch (const Error&) {
  }
  throw file_error(file, "part", "is not what a part of an export says of itself");
}

}  // namespace attnscope
