#pragma once

#include <memory>

#include "core/tile_backend.h"
#include "kernels/cuda/module.h"

namespace attnscope {

/// The backend over all devices at hand. Throws Error(unavailable) where there is none.
std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions& options);

}  // namespace attnscope
