#include <atomic>
#include <cstdint>

#include "cublas_v2.h"
#include "tests/cuda/emulation/control.h"
#include "tests/cuda/emulation/cublas_product.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/streams.h"

using namespace attnscope::cuda::emulation;

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace {

std::atomic<bool> hidden = false;

// Ends the program where cuBLAS would read or write what is not there.
void check_operand(const char* name, const void* data, std::size_t bytes, long long rows,
                   long long columns, long long leading, long long stride, int batches) {
  const long long low = stride < 0 ? stride * (batches - 1) : 0;
  const long long high = stride > 0 ? stride * (batches - 1) : 0;
  const auto* begin = static_cast<const unsigned char*>(data) + low * static_cast<long long>(bytes);
  const auto elements = static_cast<std::size_t>(high - low + (columns - 1) * leading + rows);
  if (space_of(begin, elements * bytes) != Space::kDevice) {
    fail_program(std::string("cublasGemmStridedBatchedEx: ") + name +
                 " reaches beyond its allocation, or is not device memory");
  }
}

bool supported(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute,
               cublasMath_t math) {
  const bool known = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                     compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return known && a == b && element_bytes(a) != 0 && c == CUDA_R_32F &&
         !(a == CUDA_R_32F && math == CUBLAS_TF32_TENSOR_OP_MATH);
}

// Devices before Ampere multiply in float32, and say nothing.
bool has_tf32(const CUstream_st& stream) {
  return devices()[static_cast<std::size_t>(stream.device)].major >= 8;
}

Operand operand(const void* data, cudaDataType type, bool transposed, int leading,
                long long stride) {
  return {static_cast<const unsigned char*>(data), type, transposed ? leading : 1,
          transposed ? 1 : leading, stride};
}

}  // namespace

namespace attnscope::cuda::emulation {

void hide_cublas(bool hide) { hidden = hide; }
bool is_cublas_hidden() { return hidden; }

}  // namespace attnscope::cuda::emulation

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (begin_call() != cudaSuccess || devices().empty()) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *handle = new cublasContext;
  count([](Counters& counters) { ++counters.cublas_handles; });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  delete handle;
  count([](Counters& counters) { --counters.cublas_handles; });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  handle->stream = streamId;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* streamId) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *streamId = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                     size_t workspaceSizeInBytes) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  return aligned && space_of(workspace, workspaceSizeInBytes) == Space::kDevice
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define NAME(value) \
  case value:       \
    return #value;
    NAME(CUBLAS_STATUS_SUCCESS)
    NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    NAME(CUBLAS_STATUS_ALLOC_FAILED)
    NAME(CUBLAS_STATUS_INVALID_VALUE)
    NAME(CUBLAS_STATUS_ARCH_MISMATCH)
    NAME(CUBLAS_STATUS_MAPPING_ERROR)
    NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    NAME(CUBLAS_STATUS_INTERNAL_ERROR)
    NAME(CUBLAS_STATUS_NOT_SUPPORTED)
    NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef NAME
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an invalid value was used as a parameter";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "an absent device architectural feature is required";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality is not supported";
    default:
      return "an internal operation failed";
  }
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void* alpha, const void* A, cudaDataType Atype,
                                          int lda, long long int strideA, const void* B,
                                          cudaDataType Btype, int ldb, long long int strideB,
                                          const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long int strideC, int batchCount,
                                          cublasComputeType_t computeType, cublasGemmAlgo_t) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (begin_call() != cudaSuccess) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (const int status = begin_gemm(); status != 0) {
    return static_cast<cublasStatus_t>(status);
  }
  const bool a_transposed = transa != CUBLAS_OP_N;
  const bool b_transposed = transb != CUBLAS_OP_N;
  const int a_rows = a_transposed ? k : m;
  const int b_rows = b_transposed ? n : k;
  const StreamPointer stream = find_stream(handle->stream);
  if (m < 0 || n < 0 || k < 0 || batchCount < 0 || lda < a_rows || ldb < b_rows || ldc < m ||
      lda < 1 || ldb < 1 || ldc < 1 || alpha == nullptr || beta == nullptr || stream == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!supported(Atype, Btype, Ctype, computeType, handle->math)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (m == 0 || n == 0 || batchCount == 0) {
    return CUBLAS_STATUS_SUCCESS;
  }
  if (k > 0) {
    check_operand("A", A, element_bytes(Atype), a_rows, a_transposed ? m : k, lda, strideA,
                  batchCount);
    check_operand("B", B, element_bytes(Btype), b_rows, b_transposed ? k : n, ldb, strideB,
                  batchCount);
  }
  check_operand("C", C, sizeof(float), m, n, ldc, strideC, batchCount);
  const Product product{.m = m,
                        .n = n,
                        .k = k,
                        .batches = batchCount,
                        .alpha = *static_cast<const float*>(alpha),
                        .beta = *static_cast<const float*>(beta),
                        .a = operand(A, Atype, a_transposed, lda, strideA),
                        .b = operand(B, Btype, b_transposed, ldb, strideB),
                        .c = static_cast<float*>(C),
                        .c_column_step = ldc,
                        .c_batch_step = strideC,
                        .tf32 = computeType == CUBLAS_COMPUTE_32F_FAST_TF32 && has_tf32(*stream)};
  enqueue(stream, {[product] { multiply(product); }});
  return CUBLAS_STATUS_SUCCESS;
}
