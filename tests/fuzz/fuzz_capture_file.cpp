#include "core/base/error.h"
#include "io/capture/capture.h"
#include "tests/fuzz/targets.h"

// One file as a user gives it: what kind it is, its tensors, its metadata or what is guessed, and
// the values that describe the call (cu_seqlens, numbers beside q and k, what tells the mask).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  static test::FuzzFile file("input");
  file.write(test::fuzz_text(data, size));
  try {
    const Capture capture = Capture::open(file.path());
    for (const CallEntry& call : capture.calls()) {
      const AttentionProblem& p = *call.problem;
      // The values that tell the mask are read at its first use.
      p.mask().classify(p.batch() - 1, p.num_heads() - 1, {0, p.num_queries()}, {0, p.num_keys()});
    }
  } catch (const Error&) {
  }
  return 0;
}
