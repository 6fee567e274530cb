#pragma once

#include <filesystem>

#include "io/export/write/export_sink.h"
#include "io/plan_parts/merge_maps.h"
#include "io/plan_parts/merged_export.h"

namespace attnscope {

/// Makes the whole of parts that are exports in shards: OUT.d with the shards of all parts, and
/// their master, byte for byte those of one process. Shards become OUT's by hard links where `copy`
/// is not asked for and the file system has them; what is copied is held against its checksum. An
/// interrupted merge goes on with --resume. Throws Error(file) as merge_maps() does,
/// Error(interrupted).
MergeResult merge_shards(const MergedExport& whole, const std::filesystem::path& out, bool copy,
                         const ExportWriteOptions& options, const MergeControl& control);

/// Bytes of all shards.
int64_t shards_bytes(const MergedExport& whole);

}  // namespace attnscope
