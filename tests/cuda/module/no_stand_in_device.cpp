#include <stdexcept>

#include "tests/cuda/module/stand_in_device.h"

namespace attnscope::test {

std::unique_ptr<TileBackend> make_stand_in_device(const CudaModuleOptions&) {
  throw std::logic_error("the stand-in has a device in builds with CUDA only");
}

}  // namespace attnscope::test
