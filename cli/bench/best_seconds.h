#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace attnscope {

/// Seconds of the fastest of several runs: the machine's own noise only ever adds time.
template <typename Run>
double best_seconds(int repeats, const Run& run) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const auto start = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace attnscope
