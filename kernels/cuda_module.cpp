#include "kernels/cuda_module.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "modules/module_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReasonBytes = 1024;
constexpr ModuleName kCudaModule{"CUDA", kCudaModuleFile, "ATTNSCOPE_CUDA_MODULE",
                                 "backend cuda: "};

}  // namespace

std::string cuda_module_path() { return module_path(kCudaModule); }

bool has_cuda_driver() {
  // The second is the one of Windows' Subsystem for Linux.
  std::error_code failure;
  return fs::exists("/dev/nvidiactl", failure) || fs::exists("/dev/dxg", failure);
}

CudaModule CudaModule::load(const std::string& path) {
  const ModuleFile file(kCudaModule, path, kCudaModuleAbiName,
                        cuda_module_abi(ATTNSCOPE_CUDA_SEAM));
  CudaModule module;
  module.devices_ = file.entry<decltype(module.devices_)>(kCudaModuleDevicesName);
  module.backend_ = file.entry<decltype(module.backend_)>(kCudaModuleBackendName);
  module.reader_ = file.entry<decltype(module.reader_)>(kCudaModuleReaderName);
  return module;
}

int CudaModule::devices(std::string& reason) const {
  std::array<char, kReasonBytes> text{};
  const int count = devices_(text.data(), text.size());
  if (count == 0) reason = "backend cuda: " + one_line(text.data());
  return count;
}

std::unique_ptr<TileBackend> CudaModule::make_backend(const CudaModuleOptions& options) const {
  std::array<char, kReasonBytes> reason{};
  std::unique_ptr<TileBackend> backend(backend_(options, reason.data(), reason.size()));
  if (backend == nullptr) {
    throw Error(ErrorCode::unavailable, std::string("backend cuda: ") + reason.data());
  }
  return backend;
}

}  // namespace attnscope
