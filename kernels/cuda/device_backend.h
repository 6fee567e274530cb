#pragma once

#include <memory>

#include "core/tile_backend.h"
#include "kernels/cuda/module.h"

namespace attnscope {

/// The backend of the current CUDA device, which exists. vram_bytes is what it may take of the
/// device's memory and is never 0; vram_share has been turned into it. Throws Error(unavailable)
/// where the device cannot do the work.
std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions& options);

}  // namespace attnscope
