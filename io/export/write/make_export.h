#pragma once

#include <filesystem>
#include <memory>

#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// The sink that writes the plan's export: one file, or shards and their master. Throws what
/// make_hdf5_export() and make_sharded_export() throw.
std::unique_ptr<ExportSink> make_export(ExportPlan plan, std::filesystem::path out,
                                        const ExportWriteOptions& options);

/// Throws what make_export() would for a target that cannot be written; creates nothing.
void check_export_target(const std::filesystem::path& out, const ExportWriteOptions& options,
                         bool in_shards = false);

}  // namespace attnscope
