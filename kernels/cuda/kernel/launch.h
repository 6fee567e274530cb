#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <mutex>

namespace attnscope::cuda {

struct LaunchShape {
  dim3 grid;
  int threads = 0;
  int64_t shared_bytes = 0;
};

/// A kernel and how it was launched; no kernel: nothing was.
struct KernelLaunch {
  const void* kernel = nullptr;
  LaunchShape shape;
};

/// While it lives, the calling thread's launches are noted in `to`.
class LaunchWatch {
 public:
  explicit LaunchWatch(KernelLaunch& to) { noted_ = &to; }
  ~LaunchWatch() { noted_ = nullptr; }
  LaunchWatch(const LaunchWatch&) = delete;
  LaunchWatch& operator=(const LaunchWatch&) = delete;

  static void note(const void* kernel, const LaunchShape& shape) {
    if (noted_ != nullptr) *noted_ = {kernel, shape};
  }

 private:
  static inline thread_local KernelLaunch* noted_ = nullptr;
};

/// Bytes of shared memory that every device gives a block without being asked.
inline constexpr size_t kPlainSharedBytes = 48 << 10;

/// Lets the current device's blocks of a kernel ask for so much. It is only ever raised: another
/// thread, whose launch needs more, may have asked and not yet launched.
template <typename Kernel>
cudaError_t allow_shared(Kernel kernel, size_t bytes) {
  if (bytes <= kPlainSharedBytes) return cudaSuccess;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  cudaFuncAttributes now = {};
  const cudaError_t status = cudaFuncGetAttributes(&now, kernel);
  if (status != cudaSuccess) return status;
  if (bytes <= static_cast<size_t>(now.maxDynamicSharedSizeBytes)) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

template <typename Args>
cudaError_t launch(void (*kernel)(Args), const LaunchShape& shape, cudaStream_t stream,
                   const Args& args) {
  const auto bytes = static_cast<size_t>(shape.shared_bytes);
  const cudaError_t allowed = allow_shared(kernel, bytes);
  if (allowed != cudaSuccess) return allowed;
  LaunchWatch::note(reinterpret_cast<const void*>(kernel), shape);
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace attnscope::cuda
