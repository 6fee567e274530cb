#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace attnscope::cuda {

struct LaunchShape {
  dim3 grid;
  int threads = 0;
  int64_t shared_bytes = 0;
};

/// What every device gives a block without being asked.
inline constexpr size_t kPlainSharedBytes = 48 << 10;

template <typename Kernel>
cudaError_t allow_shared(Kernel kernel, size_t bytes) {
  if (bytes <= kPlainSharedBytes) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

template <typename Args>
cudaError_t launch(void (*kernel)(Args), const LaunchShape& shape, cudaStream_t stream,
                   const Args& args) {
  const auto bytes = static_cast<size_t>(shape.shared_bytes);
  const cudaError_t allowed = allow_shared(kernel, bytes);
  if (allowed != cudaSuccess) return allowed;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace attnscope::cuda
