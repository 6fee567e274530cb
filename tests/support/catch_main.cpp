#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

#include <iostream>

#include "tests/support/skip.h"

namespace {

bool skipped = false;

}  // namespace

namespace attnscope::test {

void skip_test(const std::string& reason) {
  // A line of its own, which scripts/test looks for.
  std::cout << "skipped: " << reason << std::endl;
  skipped = true;
}

bool test_was_skipped() { return skipped; }

}  // namespace attnscope::test

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  return failed == 0 && attnscope::test::test_was_skipped() ? attnscope::test::kSkippedExitCode
                                                            : failed;
}
