#pragma once

#include <cstdint>
#include <optional>

#include "io/export/format/export_manifest.h"
#include "io/export/format/interrupted_run.h"
#include "io/export/write/export_sink.h"
#include "io/files/output_file.h"

namespace attnscope {

/// Resuming, so much of what was written last is read back.
constexpr int64_t kRecheckBytes = int64_t{1} << 30;

/// True where `options` ask to resume and OUT is there already, as `wanted`, marked complete and
/// with all of its shards in their sizes. Where it is another export, or none, or lacks something,
/// that is an Error(file), and false with `force`. Removes what a run that was killed after its end
/// left beside OUT.
bool is_complete_already(OutputFile& file, const ExportManifest& wanted,
                         const ExportWriteOptions& options);

/// Throws what is_complete_already() and take_up_same_export() of a run that resumes would; changes
/// nothing. True where OUT is complete.
bool check_resume(const std::filesystem::path& out, RunForm form, const ExportManifest& wanted,
                  const ExportWriteOptions& options);

/// take_up_interrupted() for a run that writes `wanted`.
std::optional<JournalContent> take_up_same_export(OutputFile& file, RunForm form,
                                                  const ExportManifest& wanted);

/// Throws Error(file) unless all tiles are there. To be called before an export is marked complete,
/// in every build: a mark on a file with holes would make zeros of them for ever.
void require_all_tiles(const OutputFile& file, int64_t done, int64_t total);

}  // namespace attnscope
