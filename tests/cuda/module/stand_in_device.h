#pragma once

#include <memory>

#include "core/stream/tile_backend.h"
#include "kernels/cuda/module.h"

namespace attnscope::test {

/// A backend named "cuda" that computes as the reference does; it says its options as a notice.
/// Where core cannot be part of a module (builds without CUDA), none: it throws std::logic_error.
std::unique_ptr<TileBackend> make_stand_in_device(const CudaModuleOptions& options);

}  // namespace attnscope::test
