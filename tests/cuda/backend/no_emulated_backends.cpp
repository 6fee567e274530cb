// In builds without the emulation of CUDA.
#include "tests/support/backend/backend_harness.h"

namespace attnscope::test {

std::vector<NamedBackend> emulated_cuda_backends() { return {}; }

}  // namespace attnscope::test
