#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace attnscope {

/// Milliseconds of a steady clock since the counters were made.
class FrameClock {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Milliseconds of processor time of the thread that asks; other programs do not change it.
inline double thread_cpu_ms() {
  timespec at = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e3 + static_cast<double>(at.tv_nsec) / 1e6;
}
/// Milliseconds of processor time of all threads of the program.
inline double program_cpu_ms() {
  timespec at = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e3 + static_cast<double>(at.tv_nsec) / 1e6;
}

/// The window's measurements of itself; scripts print them.
struct FrameCounters {
  int64_t frames = 0;       ///< drawn since the window was opened
  double frame_ms_max = 0;  ///< largest own work of a frame (uploads, panels, draw calls; without
                            ///< waiting for the screen) since the capture's first picture
  double frame_cpu_ms_max = 0;             ///< the same in processor time of the window's thread
  std::optional<double> first_picture_ms;  ///< from opening the capture until something stood
                                           ///< everywhere in its view
  std::optional<double> query_ms;          ///< from asking for the last line until it was drawn
};

}  // namespace attnscope
