// The CUDA backend of builds with CUDA: the module beside the program.
#include "kernels/cuda_backend.h"

#include <atomic>

#include "core/base/error.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda_module.h"

namespace attnscope {
namespace {

const CudaModule& loaded_module() {
  static const CudaModule module = CudaModule::load(cuda_module_path());
  return module;
}

/// Whoever asks for CUDA by name has it where no driver's file is seen, too.
std::atomic<bool> backend_was_made{false};

CudaState find_state() {
  if (!has_cuda_driver()) return {};
  try {
    CudaState state;
    state.usable = loaded_module().devices(state.obstacle) > 0;
    return state;
  } catch (const Error& error) {
    return {false, error.what()};
  }
}

}  // namespace

const CudaState& cuda_state() {
  static const CudaState state = find_state();
  return state;
}

std::unique_ptr<TileBackend> make_cuda_backend(const BackendOptions& options,
                                               DeviceKernels kernels) {
  auto backend =
      loaded_module().make_backend({.vram_bytes = options.vram.bytes,
                                    .vram_share = options.vram.share,
                                    .threads = options.threads,
                                    .kernels = kernels,
                                    .tf32 = options.tf32,
                                    .task = options.task.index,
                                    .tasks = options.task.count,
                                    .profile = options.profile,
                                    .fallback = make_cpu_backend({.threads = options.threads}),
                                    .notice = options.notice});
  backend_was_made = true;
  return backend;
}

const DeviceReader* cuda_reader() {
  return backend_was_made || cuda_state().usable ? loaded_module().reader() : nullptr;
}

}  // namespace attnscope
