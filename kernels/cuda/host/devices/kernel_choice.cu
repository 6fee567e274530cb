#include "kernels/cuda/host/devices/kernel_choice.h"

#include "core/base/error.h"

namespace attnscope::cuda {

bool runs(const KernelSet* set, const Device& device) {
  return set != nullptr && set->runs_on(device.capability());
}

void require_kernels(DeviceKernels kernels, const Device& device) {
  if (kernels == DeviceKernels::automatic || kernels == DeviceKernels::cublas) return;
  const bool wgmma = kernels == DeviceKernels::wgmma;
  const KernelSet* const set = wgmma ? wgmma_f16_kernels() : mma_f16_kernels();
  if (runs(set, device)) return;
  const auto version = [](int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
  };
  const std::string name = wgmma ? "wgmma" : "mma";
  throw Error(ErrorCode::unavailable,
              "backend cuda-" + name + ": " +
                  (set == nullptr
                       ? "this build has no " + name + " kernels"
                       : device.name() + " has compute capability " + version(device.capability()) +
                             ", the kernels need " + version(set->capability)));
}

std::string missing_kernels(const std::string& device, int capability, bool has_wgmma,
                            bool has_mma) {
  constexpr int kMmaCapability = 80;
  constexpr int kWgmmaCapability = 90;  // and no later one
  const std::string line = "cuda: this build has no kernels for the tensor cores of " + device;
  if (capability >= kMmaCapability && !has_mma) {
    return line + " (it was made without CuTe's headers): cuBLAS multiplies";
  }
  if (capability == kWgmmaCapability && !has_wgmma) {
    return line +
           " that use wgmma (CMAKE_CUDA_ARCHITECTURES was without 90a): slower ones are used";
  }
  return {};
}

}  // namespace attnscope::cuda
