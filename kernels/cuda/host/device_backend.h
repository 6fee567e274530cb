#pragma once

#include <memory>

#include "core/stream/tile_backend.h"
#include "kernels/cuda/module.h"

namespace attnscope {

/// The backend over all devices at hand that have computed a few maps as the fallback does; others
/// are left out with a notice each. The calling thread's device stays what it was. Throws
/// Error(unavailable or resource) where none is left.
std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions& options);

}  // namespace attnscope
