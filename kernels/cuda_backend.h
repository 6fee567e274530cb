#pragma once

#include <memory>
#include <string>

#include "core/stream/tile_backend.h"
#include "kernels/backend_options.h"
#include "kernels/cuda/module.h"

namespace attnscope {

/// Tells a choice of backends if it may take CUDA.
struct CudaState {
  bool usable = false;
  /// Where there is a driver, but no device to be used: one line that says why. Else empty.
  std::string obstacle = {};
};

/// The first call finds out, and loads the CUDA module where the machine has a driver; later ones
/// remember. Thread-safe. Never usable in builds without CUDA.
const CudaState& cuda_state();

/// Loads the CUDA module and makes its backend. Throws Error(unavailable), one line that begins
/// with "backend cuda: ", where this build has none, the module cannot be loaded, finds no
/// device, or has not the kernels that were chosen.
std::unique_ptr<TileBackend> make_cuda_backend(const BackendOptions& options,
                                               DeviceKernels kernels);

/// The reader of CUDA devices' memory; null where cuda_state() is not usable and no CUDA backend
/// was made. Lives as long as the program. Thread-safe.
const DeviceReader* cuda_reader();

}  // namespace attnscope
