#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"

// Emulation: what the compiler and the header of CUDA add to the runtime's functions. There is no
// __shared__ and no <<<>>>: kernels have dynamic shared memory only, and are launched by
// cudaLaunchKernelEx.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

// Those of the device thread that the calling host thread runs now.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;

namespace attnscope::cuda::emulation {

// Checks a launch and queues it; body runs one thread of the kernel.
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel,
                   std::function<void()> body);

}  // namespace attnscope::cuda::emulation

template <typename... ExpTypes, typename... ActTypes>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(ExpTypes...),
                                      ActTypes&&... args) {
  static_assert((std::is_trivially_copyable_v<ExpTypes> && ...),
                "the arguments of a kernel are copied byte by byte");
  static_assert((sizeof(ExpTypes) + ... + 0) <= 4096, "too many bytes of arguments");
  return [&](ExpTypes... coerced) {
    return attnscope::cuda::emulation::launch(*config, reinterpret_cast<const void*>(kernel),
                                              [kernel, coerced...] { kernel(coerced...); });
  }(std::forward<ActTypes>(args)...);
}

// The runtime's C++ forms, which take kernels as they are.
template <class T>
inline cudaError_t cudaFuncSetAttribute(T* func, cudaFuncAttribute attr, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(func), attr, value);
}
template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, T* func) {
  return cudaFuncGetAttributes(attr, reinterpret_cast<const void*>(func));
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, T* func,
                                                                 int blockSize,
                                                                 size_t dynamicSMemSize) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      numBlocks, reinterpret_cast<const void*>(func), blockSize, dynamicSMemSize);
}
template <class T>
inline cudaError_t cudaMalloc(T** devPtr, size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(devPtr), size);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** ptr, size_t size, unsigned int flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(ptr), size, flags);
}
template <class T>
inline cudaError_t cudaMallocHost(T** ptr, size_t size) {
  return cudaMallocHost(reinterpret_cast<void**>(ptr), size);
}
