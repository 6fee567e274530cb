#include "tests/fuzz/targets.h"

// safetensors, .npy, and the zip archives .npz and .pt, whatever the seeds are. HDF5 files are read
// in child processes, which costs too much here; what is not is left to tests/data/hostile.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && data[0] == 0x89) return 0;
  attnscope::test::open_and_touch(attnscope::test::fuzz_file(data, size, "input"));
  return 0;
}
