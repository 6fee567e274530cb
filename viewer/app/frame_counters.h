#pragma once

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

/// What the window measures about itself; scripts print it.
struct FrameCounters {
  int64_t frames = 0;       ///< drawn since the window was opened
  double frame_ms_max = 0;  ///< largest own work of a frame (uploads, panels, draw calls; without
                            ///< waiting for the screen) since the capture's first picture
  std::optional<double> first_picture_ms;  ///< from opening the capture until something stood
                                           ///< everywhere in its view
  std::optional<double> query_ms;          ///< from asking for the last line until it was drawn
};

}  // namespace attnscope
