#pragma once

#include <memory>

#include "cli/capture_options.h"
#include "cli/console.h"
#include "core/tile_backend.h"

namespace attnscope {

/// The backend that --backend, --threads and --vram ask for; it says its notes through `console`.
/// Throws Error(usage) for a backend that does not exist and for --vram with one that has no
/// device, Error(unavailable) as make_backend does.
std::unique_ptr<TileBackend> make_run_backend(const RunOptions& options, const Console& console);

}  // namespace attnscope
