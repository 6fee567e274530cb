#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// The sink that writes the plan's export: one file, or shards and their master. Throws what
/// make_hdf5_export() and make_sharded_export() throw.
std::unique_ptr<ExportSink> make_export(ExportPlan plan, std::filesystem::path out,
                                        const ExportWriteOptions& options);

/// Throws what an export that takes `bytes` at least would for a target that cannot be written;
/// creates nothing.
void check_export_target(const std::filesystem::path& out, const ExportWriteOptions& options,
                         bool in_shards = false, int64_t bytes = 0);
/// The same of what make_export() or make_pooled_export() makes of the plan.
void check_export_target(const ExportPlan& plan, const std::filesystem::path& out,
                         const ExportWriteOptions& options);
/// Of such a run with `resume`, whose plan has the capture's hash: throws what it would where OUT,
/// or what an interrupted run left, is of another export; changes nothing. True where OUT is
/// complete.
bool check_export_resume(const ExportPlan& plan, const std::filesystem::path& out,
                         const ExportWriteOptions& options);

}  // namespace attnscope
