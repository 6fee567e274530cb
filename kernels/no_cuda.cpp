// Takes the place of the CUDA backend in builds without a CUDA compiler.
#include "core/error.h"
#include "kernels/cuda_backend.h"

namespace attnscope {

bool cuda_available() { return false; }

std::unique_ptr<TileBackend> make_cuda_backend() {
  throw Error(ErrorCode::unavailable, "backend cuda: this attnscope was not built with CUDA");
}

}  // namespace attnscope
