#pragma once

#include <deque>
#include <optional>
#include <string>

namespace attnscope {

/// What a window tells: in a dialog, for a while, and before. Times in seconds of a steady clock.
class Notices {
 public:
  struct Failure {
    std::string title, message;
    bool problem = true;  ///< else it only tells
  };

  /// Opens a dialog of what went wrong, and keeps its message.
  void fail(const std::string& title, const std::string& message);
  /// Shows what was just done for a while, and keeps it.
  void tell(const std::string& what, double now);
  /// Keeps a message with the time of day; the last 20 are there.
  void keep(const std::string& message);
  /// Opens a dialog of the messages that are kept.
  void show_kept();
  void close() { failure_.reset(); }
  /// True where the notice has gone since.
  bool forget(double now);
  /// The seconds until forget() is due; nothing without a notice.
  std::optional<double> left(double now) const;

  const std::optional<Failure>& failure() const { return failure_; }
  const std::string& notice() const { return notice_; }  ///< one line; empty: none

 private:
  std::optional<Failure> failure_;
  std::string notice_;
  double until_ = 0;              ///< the notice is shown
  std::deque<std::string> kept_;  ///< the last first
};

}  // namespace attnscope
