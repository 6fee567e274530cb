#include "core/base/error.h"
#include "io/tensors/torch_pickle.h"
#include "tests/fuzz/targets.h"

// data.pkl of a torch.save file, by itself.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  try {
    HeadMemory memory("input", int64_t{64} << 20);
    read_torch_pickle(test::fuzz_text(data, size), "input", memory);
  } catch (const Error&) {
  }
  return 0;
}
