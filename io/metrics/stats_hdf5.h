#pragma once

#include <filesystem>
#include <span>

#include "core/heads/head_record.h"
#include "io/export/format/export_layout.h"

namespace attnscope {

/// The numbers of heads in the export format: (batch, head) variables in a group a call and branch;
/// NaN where undefined. A standard error is a variable where any head of the group has it. The
/// records must be those of the spec's heads, each with the same arrays. Creates `path`, which must
/// not exist; throws Error(file).
void write_stats_hdf5(const ExportSpec& spec, std::span<const HeadRecord> records,
                      const std::filesystem::path& path);
/// Same as write_stats_hdf5(), by the layout of a spec whose calls are not at hand.
void write_stats_hdf5(const ExportSpec& spec, const ExportLayout& layout,
                      std::span<const HeadRecord> records, const std::filesystem::path& path);

}  // namespace attnscope
