#pragma once

#include "cli/export/export_options.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"
#include "io/export/format/export_spec.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// The export that the options ask for, of the share of the capture that this run takes; without
/// the capture's hash. Throws Error(usage) for options that have no meaning or exclude each other.
ExportSpec make_export_spec(const ExportOptions& options, const Capture& capture,
                            const TileBackend& backend,
                            const std::optional<PlanShare>& share = std::nullopt);
/// How the file is written.
ExportWriteOptions write_options_of(const ExportOptions& options, const Capture& capture);

}  // namespace attnscope
