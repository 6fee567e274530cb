#include "kernels/cuda/module.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <string>

#include "core/base/error.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/tensors/device_reader.h"

namespace attnscope {
namespace {

std::string version_text(int version) {
  if (version == 0) return "none";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// CUDA says "driver version is insufficient" where there is no driver: the versions tell.
std::string no_device_text(cudaError_t status) {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return "no CUDA device: " +
         std::string(status == cudaSuccess ? "there is none" : cudaGetErrorString(status)) +
         " (CUDA of the driver: " + version_text(driver) +
         ", of this build: " + version_text(runtime) + ")";
}

}  // namespace
}  // namespace attnscope

const char* attnscope_cuda_abi() {
  static const std::string abi = attnscope::cuda_module_abi(ATTNSCOPE_CUDA_SEAM);
  return abi.c_str();
}

int attnscope_cuda_devices(char* reason, size_t reason_bytes) {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return devices;
  std::snprintf(reason, reason_bytes, "%s", attnscope::no_device_text(status).c_str());
  return 0;
}

attnscope::TileBackend* attnscope_cuda_backend(const attnscope::CudaModuleOptions& options,
                                               char* reason, size_t reason_bytes) {
  if (attnscope_cuda_devices(reason, reason_bytes) == 0) return nullptr;
  return attnscope::make_device_backend(options).release();
}

const attnscope::DeviceReader* attnscope_cuda_reader() {
  // Never destroyed: the driver may be gone before it would be.
  static const attnscope::DeviceReader* const reader =
      attnscope::cuda::make_device_reader().release();
  return reader;
}
