#include <cstdlib>
#include <vector>

#include "core/base/error.h"
#include "core/base/selection.h"
#include "tests/fuzz/targets.h"

// --steps, --layers, --heads and what crops a map.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  const std::string_view text = test::fuzz_text(data, size);
  const std::vector<int64_t> recorded{0, 1, 2, 5, 9, 30};
  try {
    if (Selection::parse(text, "--layers").resolve(recorded).empty()) std::abort();
  } catch (const Error&) {
  }
  try {
    const IndexRange range = parse_crop(text, "--rows", 1000);
    if (range.begin < 0 || range.end > 1000 || range.empty()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
