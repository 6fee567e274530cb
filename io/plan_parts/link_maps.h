#pragma once

#include <filesystem>

#include "io/export/write/export_sink.h"
#include "io/plan_parts/merge_maps.h"
#include "io/plan_parts/merged_export.h"

namespace attnscope {

/// Throws Error(usage) where a part does not stand in OUT's folder or has a name that cannot be
/// linked.
void check_linkable(const MergedExport& whole, const std::filesystem::path& out);

/// Writes the master of parts whose maps stand in tiles: the whole export, whose entries and LSEs
/// are the parts' (virtual datasets), with the name, size and digest of each part. Copies nothing,
/// so that it takes moments whatever the size; the parts have to stay beside it, under their names.
/// Throws as check_linkable() and OutputFile do.
MergeResult link_maps(const MergedExport& whole, const std::filesystem::path& out,
                      const ExportWriteOptions& options);

}  // namespace attnscope
