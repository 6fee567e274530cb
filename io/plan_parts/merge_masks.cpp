#include "io/plan_parts/merge_masks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/files/file_ending.h"
#include "io/files/file_text.h"
#include "io/files/input_file.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/plan_parts/part_set.h"
#include "io/results/mask_files.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

OrderedJson read_masks(const fs::path& path) {
  return OrderedJson::parse(read_file_text(path), nullptr, false);
}

bool is_masks(const OrderedJson& json) {
  return json.is_object() && json.contains("format") && json["format"] == "attnscope-mask/1" &&
         json.contains("heads") && json["heads"].is_array();
}

PartFacts mask_facts(const OrderedJson& json, const fs::path& path) {
  const auto text = [&](const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>()
                                                         : std::string();
  };
  if (!is_masks(json) || text("shard").empty()) {
    throw file_error(path.string(), "",
                     "is no part of what masks keep (expected one that --shard wrote)");
  }
  return {path,
          parse_export_part(text("shard"), text("plan_hash"),
                            json.value("part", OrderedJson()).dump(), path.string()),
          text("backend")};
}

/// What the whole was made of, as each part says it of itself.
void about_whole(const OrderedJson& part, const std::vector<PartFacts>& facts, OrderedJson& whole) {
  const std::string file = facts.front().path.string();
  for (const char* name : {"capture", "capture_hash", "options"}) {
    if (!part.contains(name)) {
      throw file_error(file, name, "is missing (expected a part of what masks keep)");
    }
    whole[name] = part[name];
  }
  if (!whole["options"].is_object()) throw file_error(file, "options", "is no JSON object");
  whole["capture_hash"] = hash_of_whole(facts);
  const std::string backend = joined_backends(facts);
  if (!backend.empty()) whole["options"]["backend"] = backend;
}

}  // namespace

bool is_mask_json(const fs::path& path) {
  std::error_code none;
  return path.extension() == ".json" && fs::is_regular_file(path, none) &&
         is_masks(read_masks(path));
}

MergeResult merge_masks(const std::vector<fs::path>& parts, const fs::path& out,
                        const TableMerge& how, bool force) {
  require_ending(out, {".json", ".csv"});
  OutputFile::check_target(out, {.force = force, .inputs = parts});
  std::vector<OrderedJson> read;
  std::vector<PartFacts> facts;
  for (const fs::path& path : parts) {
    read.push_back(read_masks(path));
    facts.push_back(mask_facts(read.back(), path));
  }
  OrderedJson whole{{"format", "attnscope-mask/1"}};
  const auto order = order_of_parts(facts, how.mixed);
  about_whole(read.front(), facts, whole);
  whole["heads"] = OrderedJson::array();
  for (const size_t i : order) {
    for (OrderedJson& head : read[i]["heads"]) {
      if (!head.is_object()) throw file_error(parts[i].string(), "heads", "is no list of heads");
      whole["heads"].push_back(std::move(head));
    }
  }
  if (how.dry_run) return {};
  write_mask_file(whole, out, force);
  MergeResult result;
  result.bytes_written = InputFile(out).size();
  return result;
}

}  // namespace attnscope
