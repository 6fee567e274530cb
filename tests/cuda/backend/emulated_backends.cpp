#include <stdexcept>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"

namespace attnscope::test {

std::vector<NamedBackend> emulated_cuda_backends() {
  std::vector<NamedBackend> backends;
  const std::shared_ptr<const TileBackend> cpu = make_cpu_backend({.threads = 1});
  const auto add = [&](const char* name, int major, int minor) {
    cuda::emulation::Device device = cuda::emulation::Device::of(major);
    device.minor = minor;
    cuda::emulation::set_devices({device});
    CudaModuleOptions options;
    options.fallback = cpu;
    // Nothing else may compute in the place of what is tested.
    options.notice = [](const std::string& line) { throw std::runtime_error(line); };
    backends.push_back({name, make_device_backend(options), false});
  };
  // 7.5 has no tensor-core instructions that the kernels use: cuBLAS multiplies. 8.0 has mma.sync,
  // and 9.0 wgmma.
  add("emulated cuda 7.5", 7, 5);
  add("emulated cuda 8.0", 8, 0);
  add("emulated cuda 9.0", 9, 0);
  return backends;
}

}  // namespace attnscope::test
