#include "cli/export/export_result.h"

#include <nlohmann/json.hpp>

#include "cli/common/console.h"
#include "io/files/json_types.h"

namespace attnscope {

void print_export_result(const ExportResult& result) {
  OrderedJson json{
      {"format", "attnscope-export-result/1"}, {"out", result.out}, {"heads", result.heads}};
  if (result.tiles) json["tiles"] = *result.tiles;
  if (result.tiles_kept) json["tiles_kept"] = *result.tiles_kept;
  json["bytes_written"] = result.bytes_written;
  json["seconds"] = result.seconds;
  if (!result.capture_hash.empty()) json["capture_hash"] = result.capture_hash;
  print_json(json, false);
}

}  // namespace attnscope
