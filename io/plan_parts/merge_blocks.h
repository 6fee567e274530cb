#pragma once

#include <filesystem>

#include "io/export/write/export_sink.h"
#include "io/plan_parts/merge_maps.h"
#include "io/plan_parts/merged_export.h"

namespace attnscope {

/// Writes the whole of parts that are pooled exports: byte for byte the file of one process. Throws
/// as merge_maps(); an interrupted merge keeps nothing.
MergeResult merge_blocks(const MergedExport& whole, const std::filesystem::path& out,
                         const ExportWriteOptions& options, const MergeControl& control);

}  // namespace attnscope
