// A CUDA module without CUDA, for the tests of how the program loads one. The environment variable
// ATTNSCOPE_STAND_IN says how it behaves: "other-version", "no-device", "throws", else it has a
// device.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "tests/cuda/module/stand_in_device.h"

namespace {

bool plays(const char* part) {
  const char* const given = std::getenv("ATTNSCOPE_STAND_IN");
  return given != nullptr && std::string(given) == part;
}

}  // namespace

const char* attnscope_cuda_abi() {
  static const std::string abi = attnscope::cuda_module_abi(ATTNSCOPE_CUDA_SEAM);
  return plays("other-version") ? "attnscope 0.0.1, CUDA module 0" : abi.c_str();
}

int attnscope_cuda_devices(char* reason, size_t reason_bytes) {
  if (!plays("no-device")) return 1;
  std::snprintf(reason, reason_bytes, "no CUDA device: this one\nonly plays");
  return 0;
}

attnscope::TileBackend* attnscope_cuda_backend(const attnscope::CudaModuleOptions& options,
                                               char* reason, size_t reason_bytes) {
  if (attnscope_cuda_devices(reason, reason_bytes) == 0) return nullptr;
  if (plays("throws")) {
    throw attnscope::Error(attnscope::ErrorCode::resource, "backend cuda: thrown in the module");
  }
  return attnscope::test::make_stand_in_device(options).release();
}

const attnscope::DeviceReader* attnscope_cuda_reader() { return nullptr; }
