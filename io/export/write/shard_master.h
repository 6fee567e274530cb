#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"
#include "io/files/output_file.h"

namespace attnscope {

/// The end of an export whose shards, one a group of the layout, all stand in OUT.d.part (some
/// perhaps in OUT.d already): writes its master, moves the shards, gives the master its name, and
/// removes those of the OUT that it replaced. The master has root attributes, the marks, the index
/// of calls, the shards' names, sizes and checksums, and each group with virtual datasets of its
/// shard. Where the layout has no groups, as of parts of older versions, /calls/NAME are links.
/// Gives a line for people where OUT.d holds more than these; else an empty one. Throws
/// Error(file).
std::string commit_shards(OutputFile& file, const ExportSpec& spec, const ExportLayout& layout,
                          const std::vector<Shard>& shards, bool sync);

}  // namespace attnscope
