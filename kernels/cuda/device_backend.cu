// Holds the place of the kernels.
#include "core/error.h"
#include "kernels/cuda/device_backend.h"

namespace attnscope {

std::unique_ptr<TileBackend> make_device_backend(const CudaModuleOptions&) {
  throw Error(ErrorCode::unavailable, "backend cuda: this module has no kernels");
}

}  // namespace attnscope
