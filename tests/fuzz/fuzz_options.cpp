#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/patterns/mask_pattern.h"
#include "core/problem/token_grid.h"
#include "io/capture/call/rope_option.h"
#include "io/capture/name_pattern.h"
#include "tests/fuzz/targets.h"

namespace {

template <typename Parse>
void expect_errors(const Parse& parse) {
  try {
    parse();
  } catch (const attnscope::Error&) {
  }
}

}  // namespace

// The small grammars of options, each with the same text; a pattern of names with the text after
// the first line break, if there is one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  const std::string text(test::fuzz_text(data, size));
  expect_errors([&] {
    for (const int64_t extent : parse_grid(text)) {
      if (extent < 1) std::abort();
    }
  });
  expect_errors([&] {
    if (parse_text_span(text).count < 0) std::abort();
  });
  expect_errors([&] { parse_mask_pattern(text, "--mask"); });
  expect_errors([&] {
    if (parse_size(text, "--memory", int64_t{1} << 40) < 0) std::abort();
  });
  // Mochi's names a file, of which there may be any where this runs.
  if (!text.starts_with("mochi")) expect_errors([&] { RopeOption::parse(text, {}); });
  const size_t line = text.find('\n');
  expect_errors([&] {
    const NamePattern pattern(text.substr(0, line));
    if (line != std::string::npos) pattern.match(text.substr(line + 1));
  });
  static const std::vector<NamePattern> known(common_patterns().begin(), common_patterns().end());
  known[size % known.size()].match(text);
  return 0;
}
