// Takes the place of cuda_backend.cpp in builds without a CUDA compiler.
#include "kernels/cuda_backend.h"

#include "core/base/error.h"

namespace attnscope {

const CudaState& cuda_state() {
  static const CudaState none;
  return none;
}

std::unique_ptr<TileBackend> make_cuda_backend(const BackendOptions&, DeviceKernels) {
  throw Error(ErrorCode::unavailable, "backend cuda: this attnscope was not built with CUDA");
}

const DeviceReader* cuda_reader() { return nullptr; }

}  // namespace attnscope
