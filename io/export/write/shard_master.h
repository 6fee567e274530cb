#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "io/export/format/stored_export.h"
#include "io/files/export_file.h"

namespace attnscope {

/// XXH3-64 of a whole file, and its size. Throws Error(file), Error(interrupted) soon after a stop.
uint64_t file_checksum(const std::filesystem::path& path, std::stop_token stop,
                       int64_t* bytes = nullptr);

/// Creates the master of a sharded export at `path`, to be sealed by seal_export(): root
/// attributes, /complete, the shards' names, sizes and checksums, and a link /calls/NAME to each
/// group in FOLDER/NAME.h5. Throws Error(file).
StoredExport write_shard_master(const ExportSpec& spec, const std::vector<Shard>& shards,
                                const std::filesystem::path& folder,
                                const std::filesystem::path& path);

}  // namespace attnscope
