#include <string>

#include "core/base/error.h"
#include "io/tensors/torch_file.h"
#include "tests/fuzz/targets.h"
#include "tests/support/zip_bytes.h"

// data.pkl in an archive whose checksums are right and which has storages 0 and 1 of 96 bytes: what
// the pickle says of tensors meets their bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  static const std::string storage(96, '\x3c');
  const std::string archive =
      test::zip_bytes({{"a/data.pkl", std::string(test::fuzz_text(data, size))},
                       {"a/data/0", storage},
                       {"a/data/1", storage}});
  try {
    const std::span bytes(archive);
    test::touch(*open_torch(ZipFile(std::make_shared<MemoryBytes>(std::as_bytes(bytes), "input"),
                                    "input", {.memory = int64_t{64} << 20})));
  } catch (const Error&) {
  }
  return 0;
}
