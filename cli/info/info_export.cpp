#include "cli/info/info_export.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/selection.h"
#include "io/export/read/export_verify.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

Json group_json(const StoredGroup& group) {
  Json json;
  json["name"] = group.name;
  json["batch"] = group.batch;
  json["heads"] = group.heads;
  json["rows"] = group.grid.rows;
  if (!group.entries_name.empty()) {
    json["keys"] = group.grid.cols;
    json["entries"] = group.entries_name;
    json["element_bytes"] = group.grid.element_bytes;
    json["chunk"] = {group.grid.chunk_rows, group.grid.chunk_cols};
  }
  json["lse"] = group.has_lse;
  return json;
}

std::string group_text(const StoredGroup& group) {
  std::string text = fmt::format("  {}: batch {}, heads {}: ", one_line(group.name),
                                 format_index_list(group.batch), format_index_list(group.heads));
  if (!group.entries_name.empty()) {
    text +=
        fmt::format("{} [{}, {}, {}, {}], {} bytes each", group.entries_name, group.batch.size(),
                    group.heads.size(), group.grid.rows, group.grid.cols, group.grid.element_bytes);
  }
  if (group.has_lse) {
    text += fmt::format("{}lse [{}, {}, {}]", group.entries_name.empty() ? "" : ", ",
                        group.batch.size(), group.heads.size(), group.grid.rows);
  }
  return text;
}

}  // namespace

int print_export_info(const std::string& path, bool json) {
  const ExportManifest stored = read_manifest(path);
  const ExportState state = export_state(stored, path);
  if (json) {
    Json groups = Json::array();
    for (const StoredGroup& group : stored.groups) groups.push_back(group_json(group));
    for (const Shard& shard : stored.shards) {
      groups.push_back({{"name", shard.name},
                        {"file", stored.shard_folder + "/" + shard.file},
                        {"bytes", shard.bytes}});
    }
    for (const std::string& group : stored.plain_groups) groups.push_back({{"name", group}});
    const Json options = Json::parse(stored.options, nullptr, false);
    print_json({{"format", "attnscope-info/1"},
                {"path", path},
                {"export",
                 {{"product", stored.product},
                  {"capture", stored.capture},
                  {"capture_hash", stored.capture_hash},
                  {"attnscope_version", stored.version},
                  {"options", options.is_discarded() ? Json(stored.options) : options},
                  {"file_bytes", stored.file_bytes},
                  {"complete", state.complete},
                  {"tiles_done", state.tiles_done},
                  {"tiles_total", state.tiles_total},
                  {"calls", groups}}}},
               true);
    return kExitOk;
  }
  fmt::print("{}\n", one_line(path));
  fmt::print("export: {} of {}, {}, written by attnscope {}\n", one_line(stored.product),
             one_line(stored.capture), format_bytes(stored.file_bytes), one_line(stored.version));
  for (const StoredGroup& group : stored.groups) fmt::print("{}\n", group_text(group));
  for (const Shard& shard : stored.shards) {
    fmt::print("  {}: {} in {}/{}\n", one_line(shard.name), format_bytes(shard.bytes),
               one_line(stored.shard_folder), one_line(shard.file));
  }
  for (const std::string& group : stored.plain_groups) fmt::print("  {}\n", one_line(group));
  if (!stored.plain_groups.empty()) {
    fmt::print("{}\n", state.complete ? "complete" : "incomplete");
    return kExitOk;
  }
  if (!stored.shards.empty()) {
    fmt::print("{}: {} shards\n", state.complete ? "complete" : "incomplete", stored.shards.size());
    return kExitOk;
  }
  if (state.complete) {
    fmt::print("complete: {} tiles\n", state.tiles_total);
  } else if (state.has_journal) {
    fmt::print("incomplete: {} of {} tiles\n", state.tiles_done, state.tiles_total);
  } else {
    fmt::print("incomplete: 0 of {} tiles (its journal is missing)\n", state.tiles_total);
  }
  return kExitOk;
}

}  // namespace attnscope
