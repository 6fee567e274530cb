#include "core/base/error.h"
#include "io/tensors/safetensors.h"
#include "tests/fuzz/targets.h"

// A safetensors file: header, and every tensor that it names.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  try {
    test::touch(*read_safetensors(test::fuzz_bytes(data, size), "input"));
  } catch (const Error&) {
  }
  return 0;
}
