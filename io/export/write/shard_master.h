#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"
#include "io/files/output_file.h"

namespace attnscope {

/// Creates the master of a sharded export at `path`, to be sealed by seal_export(): root
/// attributes, /complete, the shards' names, sizes and checksums, and a link /calls/NAME to each
/// group in FOLDER/FILE. Throws Error(file).
ExportManifest write_shard_master(const ExportSpec& spec, const std::vector<Shard>& shards,
                                  const std::filesystem::path& folder,
                                  const std::filesystem::path& path);

/// The end of an export whose shards all stand in OUT.d.part (some perhaps in OUT.d already):
/// writes its master, moves the shards, gives the master its name, and removes those of the OUT
/// that it replaced. Gives a line for people where OUT.d holds more than these; else an empty one.
/// Throws Error(file).
std::string commit_shards(OutputFile& file, const ExportSpec& spec,
                          const std::vector<Shard>& shards, bool sync);

}  // namespace attnscope
