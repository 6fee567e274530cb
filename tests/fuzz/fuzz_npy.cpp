#include "core/base/error.h"
#include "io/tensors/npy.h"
#include "tests/fuzz/targets.h"

// A .npy file: header, and its array.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  try {
    test::touch(*read_npy(test::fuzz_bytes(data, size), "input"));
  } catch (const Error&) {
  }
  return 0;
}
