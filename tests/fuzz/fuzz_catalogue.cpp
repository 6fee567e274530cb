#include <filesystem>

#include "core/error.h"
#include "io/capture.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = attnscope::test::fuzz_file(data, size, "capture.json");
  try {
    attnscope::Capture::open(std::filesystem::path(path).parent_path());
  } catch (const attnscope::Error&) {
  }
  return 0;
}
