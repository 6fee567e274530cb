#include <string>

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "tests/fuzz/targets.h"
#include "tests/support/tensor_files.h"

namespace {

/// q and k of two heads of 26 tokens (2 of text, 2x3x4 of video), 8 channels.
std::string call_file() {
  const std::string shape = R"(,"shape":[1,2,26,8],"data_offsets":)";
  return attnscope::test::safetensors_bytes(R"({"q":{"dtype":"F16")" + shape +
                                                R"([0,832]},"k":{"dtype":"F16")" + shape +
                                                R"([832,1664]}})",
                                            std::string(1664, '\x2c'));
}

}  // namespace

// capture.json beside two files that it may name: a.safetensors, b.safetensors.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  static const bool written = [] {
    for (const char* name : {"a.safetensors", "b.safetensors"}) {
      test::FuzzFile(name).write(call_file());
    }
    return true;
  }();
  static test::FuzzFile file("capture.json");
  if (!written) return 0;
  file.write(test::fuzz_text(data, size));
  try {
    Capture::open(test::fuzz_folder());
  } catch (const Error&) {
  }
  return 0;
}
