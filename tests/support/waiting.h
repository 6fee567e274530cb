#pragma once

#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "tests/support/sanitized.h"

namespace attnscope::test {

/// Waits until `condition` is true; false after longest_wait().
template <typename Condition>
bool becomes(const Condition& condition,
             std::chrono::milliseconds between_looks = std::chrono::milliseconds(1)) {
  const auto deadline = std::chrono::steady_clock::now() + longest_wait();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}

/// True where a child of this process has ended; it can still be waited for.
inline bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

}  // namespace attnscope::test
