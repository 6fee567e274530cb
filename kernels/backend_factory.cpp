#include "kernels/backend_factory.h"

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda_backend.h"
#include "kernels/reference/reference_backend.h"

namespace attnscope {

BackendKind parse_backend(std::string_view name) {
  // In the order of BackendKind.
  static const std::vector<std::string> names{"auto",       "reference", "cpu",        "cuda",
                                              "cuda-wgmma", "cuda-mma",  "cuda-cublas"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<BackendKind>(i);
  }
  if (name == "cuda-tf32") {
    throw usage_error("backend cuda-tf32 is asked for by --backend cuda --tf32");
  }
  const std::string nearest = nearest_word(name, names);
  throw usage_error("backend " + std::string(name) +
                    " is not known (expected auto, reference, cpu, cuda, cuda-wgmma, cuda-mma or "
                    "cuda-cublas" +
                    (nearest.empty() ? ")" : "; did you mean " + nearest + "?)"));
}

bool is_cuda(BackendKind kind) { return kind >= BackendKind::cuda; }

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

}  // namespace

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
      break;
    case BackendKind::cpu:
      break;
  }
  return make_cpu_backend({.threads = options.threads});
}

}  // namespace attnscope
