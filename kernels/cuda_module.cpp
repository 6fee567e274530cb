#include "kernels/cuda_module.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReasonBytes = 1024;

Error unavailable(const std::string& what) {
  return Error(ErrorCode::unavailable, "backend cuda: " + what);
}

/// What dlerror says, without the path where it begins with that.
std::string loader_text(const std::string& path) {
  const char* const said = dlerror();
  const std::string text = said == nullptr ? "the loader does not say why" : said;
  return text.rfind(path + ": ", 0) == 0 ? text.substr(path.size() + 2) : text;
}

template <typename Function>
Function entry(void* handle, const std::string& path, const char* name) {
  void* const symbol = dlsym(handle, name);
  if (symbol == nullptr) {
    throw unavailable(path + ": is not attnscope's CUDA module (it has no " + name + ")");
  }
  return reinterpret_cast<Function>(symbol);
}

}  // namespace

std::string cuda_module_path() {
  const char* const given = std::getenv("ATTNSCOPE_CUDA_MODULE");
  if (given != nullptr && *given != '\0') return given;
  std::error_code failure;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failure).parent_path();
  const fs::path installed = folder.parent_path() / "lib" / "attnscope";
  for (const fs::path& place : {folder, installed}) {
    if (fs::exists(place / kCudaModuleFile, failure)) return (place / kCudaModuleFile).string();
  }
  throw unavailable("its module " + std::string(kCudaModuleFile) + " is neither in " +
                    folder.string() + " nor in " + installed.string() +
                    " (ATTNSCOPE_CUDA_MODULE can name it)");
}

bool has_cuda_driver() {
  // The second is the one of Windows' Subsystem for Linux.
  std::error_code failure;
  return fs::exists("/dev/nvidiactl", failure) || fs::exists("/dev/dxg", failure);
}

CudaModule CudaModule::load(const std::string& path) {
  // A name without a slash would be looked for among the system's libraries.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  // Never closed: see the class.
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw unavailable(file + ": " + loader_text(file));
  const std::string found =
      entry<decltype(&attnscope_cuda_abi)>(handle, file, kCudaModuleAbiName)();
  if (found != cuda_module_abi()) {
    throw unavailable(file + ": belongs to another build of attnscope (expected \"" +
                      cuda_module_abi() + "\", got \"" + found + "\")");
  }
  CudaModule module;
  module.devices_ = entry<decltype(module.devices_)>(handle, file, kCudaModuleDevicesName);
  module.backend_ = entry<decltype(module.backend_)>(handle, file, kCudaModuleBackendName);
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
  if (backend == nullptr) throw unavailable(reason.data());
  return backend;
}

}  // namespace attnscope
