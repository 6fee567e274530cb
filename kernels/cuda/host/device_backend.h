#pragma once

#include <memory>

#include "core/stream/tile_backend.h"
#include "kernels/cuda/module.h"

namespace attnscope {

/// The backend over all devices at hand, after each has computed a few maps as the fallback does.
/// Throws Error(unavailable) where there is none or one computes something else.
std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions& options);

}  // namespace attnscope
