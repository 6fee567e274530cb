#pragma once

#include <memory>
#include <string>

#include "core/stream/tile_backend.h"
#include "kernels/cuda/module.h"

namespace attnscope {

/// The file of the CUDA module: what the environment variable ATTNSCOPE_CUDA_MODULE names, else
/// attnscope_cuda.so beside the running program, else in ../lib/attnscope from there (an installed
/// program is in bin/). Throws Error(unavailable) where none of these exists.
std::string cuda_module_path();

/// True where the machine has a driver that CUDA could work with. Loads nothing.
bool has_cuda_driver();

/// A loaded CUDA module. It stays loaded until the program ends, whatever becomes of this object:
/// CUDA's threads and its backends run its code. Copies are handles of the same. Thread-safe.
class CudaModule {
 public:
  /// Throws Error(unavailable), one line, where the file cannot be loaded (the line has the
  /// loader's own words, which name a library that is missing), is no such module, or belongs to
  /// another version of attnscope.
  static CudaModule load(const std::string& path);

  /// How many devices CUDA sees; where that is 0, `reason` becomes one line that says why.
  int devices(std::string& reason) const;

  /// Throws Error(unavailable) where there is no device, and what the module throws.
  std::unique_ptr<TileBackend> make_backend(const CudaModuleOptions& options) const;

  /// The reader of devices' memory; lives as long as the program.
  const DeviceReader* reader() const { return reader_(); }

 private:
  CudaModule() = default;
  decltype(&attnscope_cuda_devices) devices_ = nullptr;
  decltype(&attnscope_cuda_backend) backend_ = nullptr;
  decltype(&attnscope_cuda_reader) reader_ = nullptr;
};

}  // namespace attnscope
