#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/version.h"
#include "core/stream/tile_backend.h"
#include "core/tensor/device_reader.h"

/// Where the CUDA module (attnscope_cuda.so) and the program meet. The program looks the functions
/// below up by name after it has loaded the module; nothing else of the module is visible.
namespace attnscope {

/// Which kernels compute, of those that can: automatic takes the first that the device and the
/// build have. Tensors that only cuBLAS takes go there whatever is chosen.
enum class DeviceKernels : uint8_t { automatic, wgmma, mma, cublas };

/// The options that a program gives the CUDA module.
struct CudaModuleOptions {
  int64_t vram_bytes = 0;  ///< device memory to work in; 0: as vram_share says
  double vram_share = 0;   ///< of what is free on each device, in (0, 1]; 0: 0.9
  int threads = 0;         ///< host threads; 0: one a core this process may use
  DeviceKernels kernels = DeviceKernels::automatic;
  bool tf32 = false;  ///< float32 queries and keys are multiplied in TF32
  int task = 0;  ///< of `tasks` processes of this host: the devices are shared out (takes_device)
  int tasks = 1;
  bool profile = false;  ///< times every launch for DeviceFacet::launch_profile()
  /// Computes what does not fit a device; never null.
  std::shared_ptr<const TileBackend> fallback = {};
  /// Gets a line for people ("cuda: out of memory, halving the tile"); may be empty. Called from
  /// the threads that compute, one at a time or several.
  std::function<void(const std::string&)> notice = {};
};

/// True of a device on which the task-th of a host's `tasks` processes computes: each on every
/// tasks-th, or where there are fewer devices than processes on one, in turn.
constexpr bool takes_device(int device, int devices, int task, int tasks) {
  return tasks < devices ? device % tasks == task : device == task % devices;
}

constexpr const char* kCudaModuleFile = "attnscope_cuda.so";
constexpr const char* kCudaModuleAbiName = "attnscope_cuda_abi";
constexpr const char* kCudaModuleDevicesName = "attnscope_cuda_devices";
constexpr const char* kCudaModuleBackendName = "attnscope_cuda_backend";
constexpr const char* kCudaModuleReaderName = "attnscope_cuda_reader";

/// "attnscope 0.1.0, CUDA module 5b1f0c9a7d3e": equal in a program and a module that fit together.
/// `seam` is ATTNSCOPE_CUDA_SEAM of the caller's build, the hash of all headers that both sides are
/// compiled from (cmake/cuda_seam.cmake).
inline std::string cuda_module_abi(std::string_view seam) {
  return "attnscope " + std::string(version()) + ", CUDA module " + std::string(seam);
}

}  // namespace attnscope

extern "C" {

#define ATTNSCOPE_MODULE_ENTRY __attribute__((visibility("default")))

/// cuda_module_abi(ATTNSCOPE_CUDA_SEAM) of the module's build; the text lives as long as the
/// module.
ATTNSCOPE_MODULE_ENTRY const char* attnscope_cuda_abi();

/// How many devices CUDA sees. Where that is 0, `reason` gets one line that says why, cut to fit.
ATTNSCOPE_MODULE_ENTRY int attnscope_cuda_devices(char* reason, size_t reason_bytes);

/// A backend that the caller deletes, or null and in `reason` one line that says why there is no
/// device. Throws Error.
ATTNSCOPE_MODULE_ENTRY attnscope::TileBackend* attnscope_cuda_backend(
    const attnscope::CudaModuleOptions& options, char* reason, size_t reason_bytes);

/// The memory of all devices; lives as long as the module. Makes nothing on a device before it is
/// asked for something there.
ATTNSCOPE_MODULE_ENTRY const attnscope::DeviceReader* attnscope_cuda_reader();

}  // extern "C"
