#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace attnscope {

/// When the next moment of a film is due. Has no clock of its own: times are in seconds of one that
/// goes on. A player that was late goes on by several.
class FilmPlayer {
 public:
  bool playing() const { return playing_; }
  /// `rate`: moments a second.
  void start(double now, int rate) {
    playing_ = true;
    step_ = 1.0 / rate;
    next_ = now + step_;
  }
  void stop() { playing_ = false; }

  /// Moments to go on by.
  int64_t advance(double now) {
    if (!playing_ || now < next_) return 0;
    const auto steps = 1 + static_cast<int64_t>(std::floor((now - next_) / step_));
    next_ += static_cast<double>(steps) * step_;
    return steps;
  }
  /// Seconds until one is due; negative: none is.
  double wait(double now) const { return playing_ ? std::max(0.0, next_ - now) : -1; }

 private:
  bool playing_ = false;
  double step_ = 1, next_ = 0;
};

/// Where a film of `count` moments is after `steps` more, and whether it goes on from there.
struct FilmPlace {
  int64_t moment = 0;
  bool goes_on = true;
};
inline FilmPlace film_place(int64_t moment, int64_t steps, int64_t count, bool loop) {
  const int64_t to = moment + steps;
  if (count < 1) return {0, false};
  if (to < count) return {to, true};
  return loop ? FilmPlace{to % count, true} : FilmPlace{count - 1, false};
}

}  // namespace attnscope
