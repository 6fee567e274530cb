// Takes the place of cuda_loader.cpp in builds without a CUDA compiler.
#include "core/base/error.h"
#include "kernels/cuda_backend.h"

namespace attnscope {

const CudaState& cuda_state() {
  static const CudaState none;
  return none;
}

std::unique_ptr<TileBackend> make_cuda_backend(const BackendOptions&, DeviceKernels) {
  throw Error(ErrorCode::unavailable, "backend cuda: this attnscope was not built with CUDA");
}

}  // namespace attnscope
