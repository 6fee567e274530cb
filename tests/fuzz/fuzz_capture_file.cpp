#include "core/base/error.h"
#include "io/capture/capture.h"
#include "tests/fuzz/targets.h"

// One file as a user gives it: what kind it is, its tensors, its metadata or what is guessed, and
// the values that describe the call (cu_seqlens, numbers beside q and k).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  static test::FuzzFile file("input");
  file.write(test::fuzz_text(data, size));
  try {
    Capture::open(file.path());
  } catch (const Error&) {
  }
  return 0;
}
