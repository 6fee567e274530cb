#include "python/native/watched_run.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/start_thread.h"

namespace attnscope {
namespace {

namespace nb = nanobind;

constexpr std::chrono::milliseconds kLook{50};

/// How the work ended, for the one who waits.
struct Ending {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr failure;

  bool wait() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kLook, [&] { return done; });
  }
};

/// Handles signals and reports; true where Python raised, which `raised` then has.
bool look(const nb::object& progress, double share, std::optional<nb::python_error>& raised) {
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(share);
    return false;
  } catch (nb::python_error& error) {
    raised.emplace(std::move(error));
    return true;
  }
}

}  // namespace

void run_watched(const std::function<void(RunWatch&)>& work, const nb::object& progress) {
  RunWatch watch;
  Ending ending;
  std::optional<nb::python_error> raised;
  std::vector<std::jthread> workers;
  start_thread(workers, 1, [&] {
    std::exception_ptr failure;
    try {
      work(watch);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard guard(ending.mutex);
    ending.done = true;
    ending.failure = failure;
    ending.changed.notify_all();
  });
  while (true) {
    bool done = false;
    {
      const nb::gil_scoped_release unlocked;
      done = ending.wait();
      if (done) workers.clear();
    }
    if (done) break;
    if (!raised && look(progress, watch.share_.load(std::memory_order_relaxed), raised)) {
      watch.source_.request_stop();
    }
  }
  if (raised) throw std::move(*raised);
  if (ending.failure) std::rethrow_exception(ending.failure);
  if (!progress.is_none()) progress(1.0);
}

}  // namespace attnscope
