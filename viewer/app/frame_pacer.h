#pragma once

#include <algorithm>

namespace attnscope {

/// When a frame is worth drawing that nobody's hand asked for: what the workers bring is shown
/// soon, but drawing must not take the processor from them, least of all where it is the processor
/// that draws. Times in seconds of one clock.
class FramePacer {
 public:
  /// A frame was drawn; `hurried`: somebody is at the mouse or the keys.
  void drew(double began, double ended, bool hurried) {
    const double spent = ended - began;
    news_at_ = ended + (hurried ? std::max(kHurriedSeconds, spent)
                                : std::max(kNewsSeconds, kPauses * spent));
    progress_at_ = ended + std::max(kProgressSeconds, kProgressPauses * spent);
  }
  /// `news`: something new can be shown; `busy`: work goes on, whose progress is shown.
  bool due(double now, bool news, bool busy) const {
    return (news && now >= news_at_) || (busy && now >= progress_at_);
  }
  /// How long until a frame is due; negative: none is.
  double wait(double now, bool news, bool busy) const {
    if (!news && !busy) return -1;
    return std::max(0.0, (news ? news_at_ : progress_at_) - now);
  }

 private:
  static constexpr double kHurriedSeconds = 0.016;
  static constexpr double kNewsSeconds = 0.1;
  static constexpr double kProgressSeconds = 0.5;
  /// Pauses between such frames are so many times as long as a frame takes.
  static constexpr double kPauses = 6;
  static constexpr double kProgressPauses = 20;
  double news_at_ = 0, progress_at_ = 0;
};

}  // namespace attnscope
