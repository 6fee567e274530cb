#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <stop_token>

namespace attnscope {

/// Tells a piece of work to stop, and takes the share of it that is done. Thread-safe.
class RunWatch {
 public:
  std::stop_token stop() const { return source_.get_token(); }
  /// Which share of it is done.
  void progress(double share) { share_.store(share, std::memory_order_relaxed); }

 private:
  friend void run_watched(const std::function<void(RunWatch&)>& work,
                          const nanobind::object& progress);
  std::stop_source source_;
  std::atomic<double> share_{0};
};

/// Runs `work`, which must not touch Python, on a thread of its own. This one, which holds the
/// interpreter's lock, gives it up meanwhile, and takes it every 50 ms to let the interpreter
/// handle its signals (only Python's main thread does: nobody's handlers are replaced) and to call
/// `progress`, unless it is None, with the share that is done. Where a handler or `progress`
/// raises, as Ctrl-C does, the work is stopped, and its exception is raised once the work has
/// ended. Else throws what the work throws.
void run_watched(const std::function<void(RunWatch&)>& work, const nanobind::object& progress);

}  // namespace attnscope
