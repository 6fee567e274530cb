#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "cli/common/console.h"
#include "cli/export/export_options.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cluster/team.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"
#include "io/export/format/export_spec.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

// Messages and steps of an export, of one process or several.

/// Says what is about to happen, in one line.
void say_export_start(const Console& console, const ExportOptions& options, const ExportSpec& spec,
                      const RunPlan& plan, const TileBackend& backend);

/// So many tiles of what the sink writes.
KeptParts kept_tiles(const ExportSink& sink, int64_t done);
/// Of a run that fails: whatever becomes of it, its first failure is what is said.
void commit_what_can_be(ExportSink& sink);

/// The digests of the calls, of which each process of a team reads its run.
void find_hashes(ExportSpec& spec, Team& team, const Capture& capture, bool with_values,
                 const std::stop_token& stop);

/// Says what was found of an earlier run, where one is gone on with.
void say_export_resume(const Console& console, const ExportSink& sink);

/// "wrote maps.h5 (1.2 GiB in 3.4 s, 353 MB/s)".
std::string written_text(const ExportOptions& options, int64_t bytes, double seconds);

}  // namespace attnscope
