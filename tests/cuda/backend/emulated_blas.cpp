// The emulation's cuBLAS in the place of the library that the module loads.
#include "kernels/cuda/host/devices/blas_library.h"
#include "kernels/cuda/host/devices/unusable.h"
#include "tests/cuda/emulation/control.h"

namespace attnscope::cuda {

const BlasLibrary& blas_library() {
  if (emulation::is_cublas_hidden()) {
    throw Unusable("cuda: cuBLAS cannot be used: libcublas.so: no such file (a test)");
  }
  static const BlasLibrary library{
      cublasCreate,      cublasDestroy,         cublasSetStream,           cublasSetWorkspace,
      cublasSetMathMode, cublasGetStatusString, cublasGemmStridedBatchedEx};
  return library;
}

}  // namespace attnscope::cuda
