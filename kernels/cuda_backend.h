#pragma once

#include <memory>

#include "core/tile_backend.h"

namespace attnscope {

/// Whether this build has the CUDA backend and the machine a device for it.
bool cuda_available();

/// Throws Error(unavailable) when cuda_available() is false, saying why.
std::unique_ptr<TileBackend> make_cuda_backend();

}  // namespace attnscope
