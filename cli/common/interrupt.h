#pragma once

#include <csignal>
#include <latch>
#include <stop_token>
#include <thread>

#include "cli/common/console.h"

namespace attnscope {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP requests the console's stop, which is
/// token(), and a second one ends the process at once with 128 + the signal's number. Constructed
/// before any other thread is started (threads inherit the blocked signals); one at a time. Outside
/// its life the signals have their usual effect.
class InterruptWatch {
 public:
  explicit InterruptWatch(const Console& console);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  std::stop_token token() const { return source_.get_token(); }
  bool interrupted() const { return source_.stop_requested(); }
  /// Another watch follows at once: what comes between the two waits for it.
  void hand_on() { handed_on_ = true; }

 private:
  void watch();

  sigset_t signals_;
  std::stop_source source_;
  int signal_fd_ = -1;
  int finish_fd_ = -1;
  bool handed_on_ = false;
  std::latch started_{1};
  std::thread watcher_;
};

}  // namespace attnscope
