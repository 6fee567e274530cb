#include "io/export/write/shared_export.h"

#include <nlohmann/json.hpp>

#include "io/files/json_types.h"

namespace attnscope {

std::string ExportInvitation::text() const {
  Json groups = Json::array();
  for (const GroupPlaces& group : places.groups) {
    groups.push_back({group.entries, group.entries_checksums, group.lse, group.lse_checksums});
  }
  const Json json{
      {"complete", complete},       {"resumed", resumed},          {"token", token},
      {"structure", structure},     {"mark", places.complete},     {"sum", places.structure},
      {"bytes", places.file_bytes}, {"groups", std::move(groups)}, {"done", done}};
  return json.dump();
}

ExportInvitation ExportInvitation::parse(const std::string& text) {
  const Json json = Json::parse(text);
  ExportInvitation result;
  result.complete = json.at("complete");
  result.resumed = json.at("resumed");
  result.token = json.at("token");
  result.structure = json.at("structure");
  result.places.complete = json.at("mark");
  result.places.structure = json.at("sum");
  result.places.file_bytes = json.at("bytes");
  for (const Json& group : json.at("groups")) {
    result.places.groups.push_back({group.at(0), group.at(1), group.at(2), group.at(3)});
  }
  result.done = json.at("done").get<std::vector<uint64_t>>();
  return result;
}

}  // namespace attnscope
