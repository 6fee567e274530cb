#include "io/export/format/export_header.h"

#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

constexpr const char* kFormat = "attnscope-journal/1";

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

OrderedJson content_of(const ExportManifest& stored) {
  OrderedJson json;
  json["attnscope_version"] = stored.version;
  json["capture"] = stored.capture;
  json["capture_hash"] = stored.capture_hash;
  const OrderedJson options = OrderedJson::parse(stored.options, nullptr, false);
  json["options"] = options.is_object() ? options : OrderedJson(stored.options);
  if (stored.part) {
    json["shard"] = stored.part->plan.share.text();
    json["plan_hash"] = stored.part->plan.plan_hash;
  }
  return json;
}

std::string dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void compare(const std::string& name, const OrderedJson& there, const OrderedJson& wanted,
             std::string& text) {
  if (there == wanted) return;
  if (there.is_object() && wanted.is_object()) {
    std::set<std::string> keys;
    for (const OrderedJson* side : {&there, &wanted}) {
      for (const auto& [key, value] : side->items()) keys.insert(key);
    }
    for (const std::string& key : keys) {
      const auto value = [&](const OrderedJson& side) {
        return side.contains(key) ? side[key] : OrderedJson();
      };
      compare(name.empty() ? key : name + "." + key, value(there), value(wanted), text);
    }
    return;
  }
  text += fmt::format("{}{} is {} there, {} here", text.empty() ? "" : "; ", name, dump(there),
                      dump(wanted));
}

}  // namespace

std::string make_export_header(const ExportManifest& stored) {
  OrderedJson json;
  json["format"] = kFormat;
  json["boot"] = boot_id();
  json["content"] = content_of(stored);
  return dump(json);
}

std::string header_difference(const std::string& header, const ExportManifest& wanted,
                              const std::string& file) {
  const OrderedJson json = OrderedJson::parse(header, nullptr, false);
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat ||
      !json.contains("content") || !json["content"].is_object()) {
    throw file_error(file, "", "is the journal of another program or version");
  }
  std::string text;
  // Text that JSON cannot hold was replaced in the header, so it is replaced here too.
  compare("", json["content"], OrderedJson::parse(dump(content_of(wanted))), text);
  return text;
}

std::string content_difference(const ExportManifest& there, const ExportManifest& wanted) {
  std::string text;
  compare("", content_of(there), content_of(wanted), text);
  return text;
}

bool machine_restarted_since(const std::string& header) {
  const OrderedJson json = OrderedJson::parse(header, nullptr, false);
  return !json.is_object() || !json.contains("boot") || json["boot"] != boot_id();
}

}  // namespace attnscope
