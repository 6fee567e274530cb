#include "kernels/backend_factory.h"

#include <string>
#include <vector>

#include "core/base/choice_list.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "kernels/common/tile_unit.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda_backend.h"
#include "kernels/reference/reference_backend.h"

namespace attnscope {
namespace {

DeviceKernels kernels_of(BackendKind kind) {
  switch (kind) {
    case BackendKind::cuda_wgmma:
      return DeviceKernels::wgmma;
    case BackendKind::cuda_mma:
      return DeviceKernels::mma;
    case BackendKind::cuda_cublas:
      return DeviceKernels::cublas;
    default:
      return DeviceKernels::automatic;
  }
}

CpuProducts products_of(BackendKind kind) {
  switch (kind) {
    case BackendKind::cpu:
      return CpuProducts::vectors;
    case BackendKind::cpu_amx:
      return CpuProducts::tiles;
    case BackendKind::cpu_amx_fp16:
      return CpuProducts::f16_tiles;
    case BackendKind::cpu_bf16:
      return CpuProducts::bf16;
    case BackendKind::cpu_fma:
      return CpuProducts::floats;
    default:
      return CpuProducts::best;
  }
}

/// Null where the cpu is to compute.
std::unique_ptr<TileBackend> cuda_if_usable(const BackendOptions& options) {
  std::string obstacle = cuda_state().obstacle;
  if (cuda_state().usable) {
    try {
      return make_cuda_backend(options, DeviceKernels::automatic);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable) throw;
      obstacle = error.what();
    }
  }
  if (!obstacle.empty() && options.notice) options.notice(obstacle + "; the cpu computes");
  return nullptr;
}

/// A processor's tile unit that stays idle costs most of the speed: it is said why.
void tell_unused_tiles(const BackendOptions& options) {
  if (!tile_unit().present || !options.notice) return;
  const std::string obstacle = cpu_products_obstacle(CpuProducts::tiles);
  if (!obstacle.empty()) return options.notice(obstacle + "; vector instructions compute");
  const std::string of_f16 = cpu_products_obstacle(CpuProducts::f16_tiles);
  if (tile_unit().multiplies_f16 && !of_f16.empty()) options.notice(of_f16 + "; bf16 ones compute");
}

}  // namespace

const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names{"auto",         "reference", "cpu",        "cpu-amx",
                                              "cpu-amx-fp16", "cpu-bf16",  "cpu-fma",    "cuda",
                                              "cuda-wgmma",   "cuda-mma",  "cuda-cublas"};
  return names;
}

BackendKind parse_backend(std::string_view name) {
  const std::vector<std::string>& names = backend_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<BackendKind>(i);
  }
  if (name == "cuda-tf32") {
    throw usage_error("backend cuda-tf32 is asked for by --backend cuda --tf32");
  }
  const std::string nearest = nearest_word(name, names);
  throw usage_error("backend " + std::string(name) + " is not known (expected " +
                    choice_list(names) +
                    (nearest.empty() ? ")" : "; did you mean " + nearest + "?)"));
}

bool is_cuda(BackendKind kind) { return kind >= BackendKind::cuda; }

std::unique_ptr<TileBackend> make_backend(BackendKind kind, const BackendOptions& options) {
  switch (kind) {
    case BackendKind::reference:
      return make_reference_backend(options.threads);
    case BackendKind::cuda:
    case BackendKind::cuda_wgmma:
    case BackendKind::cuda_mma:
    case BackendKind::cuda_cublas:
      return make_cuda_backend(options, kernels_of(kind));
    case BackendKind::automatic:
      if (auto backend = cuda_if_usable(options)) return backend;
      tell_unused_tiles(options);
      break;
    case BackendKind::cpu:
    case BackendKind::cpu_amx:
    case BackendKind::cpu_amx_fp16:
    case BackendKind::cpu_bf16:
    case BackendKind::cpu_fma:
      break;
  }
  return make_cpu_backend({.threads = options.threads, .products = products_of(kind)});
}

}  // namespace attnscope
