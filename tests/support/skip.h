#pragma once

#include <string>

namespace attnscope::test {

/// The exit code of a test program in which nothing failed and a test case was skipped; CTest shows
/// the case as skipped then, and neither as passed nor as failed.
inline constexpr int kSkippedExitCode = 77;

/// Says that the test case that runs is left out because its means are not here, and why. The case
/// returns afterwards. For test cases as a whole: what has checked anything should not be left half
/// done.
void skip_test(const std::string& reason);

/// True once a test case was skipped since the program began.
bool test_was_skipped();

}  // namespace attnscope::test
