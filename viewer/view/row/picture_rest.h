#pragma once

#include <algorithm>

namespace attnscope {

/// When a picture that takes long to draw is drawn with fewer pixels: while what it shows goes on
/// changing, until it has come to rest. Has no clock: times in seconds of one that goes on.
class PictureRest {
 public:
  enum class Draw { kept, coarse, whole };
  /// How long nothing must have changed.
  static constexpr double kRestSeconds = 0.15;

  /// The way to draw this frame. `held`: a hand turns it, so that more changes will follow.
  Draw next(bool changed, bool held, double now) {
    if (changed) {
      coarse_ = held || (drawn_ && now - changed_at_ < kRestSeconds);
      changed_at_ = now;
      drawn_ = true;
      return coarse_ ? Draw::coarse : Draw::whole;
    }
    // A timer may ring a moment early.
    if (!coarse_ || now - changed_at_ < kRestSeconds - 1e-3) return Draw::kept;
    coarse_ = false;
    return Draw::whole;
  }
  /// How long until the whole picture is due; negative: it is there.
  double wait(double now) const {
    return coarse_ ? std::max(0.0, changed_at_ + kRestSeconds - now) : -1;
  }

 private:
  bool drawn_ = false, coarse_ = false;
  double changed_at_ = 0;
};

}  // namespace attnscope
