#include <string>
#include <vector>

#include "core/error.h"
#include "core/selection.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<int64_t> recorded{0, 1, 2, 5, 9, 30};
    attnscope::Selection::parse(text, "--layers").resolve(recorded);
  } catch (const attnscope::Error&) {
  }
  return 0;
}
