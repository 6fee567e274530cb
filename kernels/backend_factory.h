#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/stream/tile_backend.h"

namespace attnscope {

/// The last three are cuda with kernels that are chosen, not the best of the device.
enum class BackendKind : uint8_t {
  automatic,
  reference,
  cpu,
  cuda,
  cuda_wgmma,
  cuda_mma,
  cuda_cublas
};

/// "auto", "reference", "cpu", "cuda", "cuda-wgmma", "cuda-mma", "cuda-cublas"; throws Error(usage)
/// suggesting the nearest otherwise.
BackendKind parse_backend(std::string_view name);
/// Whether a backend of that kind computes on a device.
bool is_cuda(BackendKind kind);

/// How much of a device's memory a backend may work in: `bytes`, or where that is 0 `share` of what
/// is free there, in (0, 1]; where both are 0 the backend chooses.
struct DeviceMemory {
  int64_t bytes = 0;
  double share = 0;
};

struct BackendOptions {
  int threads = 0;         ///< 0: one a core this process may use
  DeviceMemory vram = {};  ///< for backends that have a device
  bool tf32 = false;       ///< cuda multiplies float32 tensors in TF32
  bool profile = false;    ///< a backend that has a device times what it does there
  /// Gets lines for people about how the work goes on ("cuda: out of memory, halving the tile");
  /// may be empty. Backends call it from the threads that compute, which may be several at once.
  std::function<void(const std::string&)> notice = {};
};

/// Throws Error(unavailable), one line, when the backend was not built, finds no device, or has not
/// the kernels that were chosen.
/// automatic: cuda where it is built and finds a device, else cpu; `notice` is told where there is
/// a driver for a device and yet cuda is not taken.
std::unique_ptr<TileBackend> make_backend(BackendKind kind, const BackendOptions& options = {});

}  // namespace attnscope
