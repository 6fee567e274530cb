#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/stream/tile_backend.h"
#include "kernels/backend_options.h"

namespace attnscope {

/// cpu is the best of the processor without its tile unit, cuda the best of the device; names that
/// say more than that are theirs with kernels that are chosen.
enum class BackendKind : uint8_t {
  automatic,
  reference,
  cpu,
  cpu_amx,
  cpu_amx_fp16,
  cpu_bf16,
  cpu_fma,
  cuda,
  cuda_wgmma,
  cuda_mma,
  cuda_cublas
};

/// "auto", "reference", "cpu", "cpu-amx", "cpu-amx-fp16", "cpu-bf16", "cpu-fma", "cuda",
/// "cuda-wgmma", "cuda-mma", "cuda-cublas"; throws Error(usage) suggesting the nearest otherwise.
BackendKind parse_backend(std::string_view name);
/// In the order of BackendKind.
const std::vector<std::string>& backend_names();
/// True of a kind of backend that computes on a CUDA device.
bool is_cuda(BackendKind kind);

/// Throws Error(unavailable), one line, when the backend was not built, finds no device, or has not
/// the kernels that were chosen.
/// automatic: cuda where it is built and finds a device, else cpu_amx_fp16 or cpu_amx where this
/// process may use it, else cpu; `notice` is told where there is a driver for a device and yet cuda
/// is not taken.
std::unique_ptr<TileBackend> make_backend(BackendKind kind, const BackendOptions& options = {});

}  // namespace attnscope
