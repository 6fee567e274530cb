#pragma once

#include <memory>
#include <string_view>

#include "core/tile_backend.h"

namespace attnscope {

enum class BackendKind : uint8_t { automatic, reference, cpu, cuda };

/// "auto", "reference", "cpu", "cuda"; throws Error(usage) suggesting the nearest otherwise.
BackendKind parse_backend(std::string_view name);

struct BackendOptions {
  int threads = 0;  ///< 0: one a core this process may use
};

/// Throws Error(unavailable), one line, when the backend was not built or finds no device.
/// automatic: cuda where it is built and finds a device, else cpu.
std::unique_ptr<TileBackend> make_backend(BackendKind kind, const BackendOptions& options = {});

}  // namespace attnscope
