#include "kernels/backend_factory.h"

#include <string>
#include <vector>

#include "core/error.h"
#include "core/selection.h"
#include "kernels/cpu_backend.h"
#include "kernels/cuda_backend.h"
#include "kernels/reference_backend.h"

namespace attnscope {

BackendKind parse_backend(std::string_view name) {
  // In the order of BackendKind.
  static const std::vector<std::string> names{"auto", "reference", "cpu", "cuda"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<BackendKind>(i);
  }
  const std::string nearest = nearest_word(name, names);
  throw usage_error("backend " + std::string(name) +
                    " is not known (expected auto, reference, cpu or cuda" +
                    (nearest.empty() ? ")" : "; did you mean " + nearest + "?)"));
}

std::unique_ptr<TileBackend> make_backend(BackendKind kind, const BackendOptions& options) {
  switch (kind) {
    case BackendKind::reference:
      return make_reference_backend(options.threads);
    case BackendKind::cuda:
      return make_cuda_backend();
    case BackendKind::automatic:
      if (cuda_available()) return make_cuda_backend();
      break;
    case BackendKind::cpu:
      break;
  }
  return make_cpu_backend({.threads = options.threads});
}

}  // namespace attnscope
