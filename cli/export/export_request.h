#pragma once

#include "cli/export/export_options.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"
#include "io/export/format/export_spec.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// What the options ask for of a capture, but for the capture's hash; of it, the share that this
/// run takes. Throws Error(usage) where an option cannot be meant, or does not go with another.
ExportSpec make_export_spec(const ExportOptions& options, const Capture& capture,
                            const TileBackend& backend,
                            const std::optional<PlanShare>& share = std::nullopt);
/// How the file is written.
ExportWriteOptions write_options_of(const ExportOptions& options, const Capture& capture);

}  // namespace attnscope
