#pragma once

#include <cublas_v2.h>

namespace attnscope::cuda {

/// cublasGemmStridedBatchedEx, of which the header has a second one in C++.
using BlasMultiply = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                        int, int, const void*, const void*, cudaDataType, int,
                                        long long int, const void*, cudaDataType, int,
                                        long long int, const void*, void*, cudaDataType, int,
                                        long long int, int, cublasComputeType_t, cublasGemmAlgo_t);

/// The functions of cuBLAS that are called. It is loaded when the first product needs it: its 600
/// MB take a second that most runs need not spend, and most need not notice that it is missing.
struct BlasLibrary {
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasDestroy) destroy = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasSetWorkspace) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasGetStatusString) status_text = nullptr;
  BlasMultiply multiply = nullptr;
};

/// Loads it on the first call; it stays until the program ends. Thread-safe. Throws Unusable, one
/// line, where it is missing.
const BlasLibrary& blas_library();

}  // namespace attnscope::cuda
