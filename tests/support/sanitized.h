#pragma once

#include <chrono>

namespace attnscope::test {

/// True where a sanitizer watches this build, which makes arithmetic ten times dearer.
constexpr bool sanitized() {
#if defined(ATTNSCOPE_SANITIZED)
  return true;
#else
  return false;
#endif
}

/// How long a test waits for what comes for certain, which only a defect exceeds: beside other
/// tests a watched pass over a map of some thousand tokens takes a minute.
constexpr std::chrono::minutes longest_wait() { return std::chrono::minutes(sanitized() ? 10 : 1); }

}  // namespace attnscope::test
