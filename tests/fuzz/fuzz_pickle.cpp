#include <string_view>

#include "core/error.h"
#include "io/torch_pickle.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    attnscope::read_torch_pickle({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const attnscope::Error&) {
  }
  return 0;
}
