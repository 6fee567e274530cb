#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"

namespace attnscope {

/// Creates the master of a sharded export at `path`, to be sealed by seal_export(): root
/// attributes, /complete, the shards' names, sizes and checksums, and a link /calls/NAME to each
/// group in FOLDER/FILE. Throws Error(file).
ExportManifest write_shard_master(const ExportSpec& spec, const std::vector<Shard>& shards,
                                  const std::filesystem::path& folder,
                                  const std::filesystem::path& path);

}  // namespace attnscope
