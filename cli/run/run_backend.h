#pragma once

#include <memory>
#include <span>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Ends a command's backend. With `profile`, prints on standard error what its launches took,
/// unless an error is on its way.
struct RunBackendEnd {
  bool profile = false;
  void operator()(TileBackend* backend) const;
};
using RunBackend = std::unique_ptr<TileBackend, RunBackendEnd>;

/// The backend that --backend, --threads, --vram, --tf32 and --profile ask for; it says its notes
/// through `console`. Throws Error(usage) for a backend that does not exist and for what is for
/// devices with one that has none, Error(unavailable) as make_backend does.
RunBackend make_run_backend(const RunOptions& options, const Console& console);

/// The backend name that outputs record for these calls: its name for them where that is one for
/// all, else its general name.
std::string recorded_backend(const TileBackend& backend, std::span<const SelectedCall> calls);

}  // namespace attnscope
