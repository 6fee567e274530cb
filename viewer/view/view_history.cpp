#include "viewer/view/view_history.h"

#include <utility>

namespace attnscope {

ViewHistory::Gesture ViewHistory::gesture_of(const Action& action) {
  if (std::holds_alternative<action::Pan>(action) ||
      std::holds_alternative<action::ZoomAt>(action)) {
    return Gesture::move;
  }
  if (std::holds_alternative<action::SetSplit>(action)) return Gesture::split;
  const auto* const range = std::get_if<action::SetRange>(&action);
  if (range != nullptr && !range->range.automatic) return Gesture::range;
  if (const auto* volume = std::get_if<action::SetVolume>(&action); volume && volume->dragged) {
    return Gesture::volume;
  }
  if (const auto* mask = std::get_if<action::SetMask>(&action); mask && mask->dragged) {
    return Gesture::mask;
  }
  if (std::holds_alternative<action::Scrub>(action)) return Gesture::scrub;
  if (std::holds_alternative<action::SetMoment>(action)) return Gesture::moment;
  if (std::holds_alternative<action::SetSplitLine>(action)) return Gesture::line;
  if (std::holds_alternative<action::SetOtherRect>(action)) return Gesture::other;
  return Gesture::none;
}

void ViewHistory::hold_gesture(double seconds, bool pressed) {
  if (pressed && seconds - last_ > kGestureGap) end_gesture();
  last_ = seconds;
}

void ViewHistory::apply(const Action& action, const ViewLimits& limits, double seconds) {
  ViewState next = apply_action(now_, action, limits);
  const Gesture gesture = gesture_of(action);
  const double gap = gesture == Gesture::scrub ? kScrubGap : kGestureGap;
  const bool goes_on = gesture != Gesture::none && gesture == gesture_ && seconds - last_ <= gap;
  // A move against the edge changes nothing, and still is part of the gesture.
  gesture_ = gesture;
  last_ = seconds;
  if (!goes_on) recorded_ = false;
  if (next == now_) return;
  if (!std::exchange(recorded_, true)) record();
  after_.clear();
  now_ = std::move(next);
}

void ViewHistory::become(ViewState next) {
  end_gesture();
  recorded_ = false;
  if (next == now_) return;
  record();
  now_ = std::move(next);
}

void ViewHistory::record() {
  before_.push_back(now_);
  if (before_.size() > kHistorySteps) before_.pop_front();
  after_.clear();
}

void ViewHistory::take_back() {
  end_gesture();
  if (!std::exchange(recorded_, false) || before_.empty()) return;
  now_ = std::move(before_.back());
  before_.pop_back();
}

bool ViewHistory::undo() {
  end_gesture();
  recorded_ = false;
  if (before_.empty()) return false;
  after_.push_back(std::exchange(now_, std::move(before_.back())));
  before_.pop_back();
  return true;
}

bool ViewHistory::redo() {
  end_gesture();
  recorded_ = false;
  if (after_.empty()) return false;
  before_.push_back(std::exchange(now_, std::move(after_.back())));
  after_.pop_back();
  return true;
}

void ViewHistory::restart(ViewState start) { *this = ViewHistory(std::move(start)); }

}  // namespace attnscope
