#pragma once

#include <cstdint>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Compares a capture that was opened with `options` with a few of its own recorded outputs, as
/// `backend` computes them in `memory`, and warns where they differ; not where an option asks
/// for another score or mask, which is a question, not a correction. Throws Error(interrupted).
void check_capture(const Capture& capture, const CaptureOptions& options,
                   const TileBackend& backend, const MemoryRoom& memory, const Console& console);

/// Checks on the CPU, for commands that compute no maps.
void check_capture(const Capture& capture, const CaptureOptions& options, const Console& console);

}  // namespace attnscope
