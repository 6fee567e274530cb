#include "viewer/tiles/capture_follower.h"

#include <algorithm>
#include <chrono>

#include "core/base/failure_text.h"
#include "io/capture/capture_growth.h"
#include "io/capture/computable.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// How often is looked whether something was added; rarer where opening it takes long.
constexpr std::chrono::milliseconds kPause{500};
constexpr int kPausesOfWork = 4;

ReadControl growing(ReadControl control) {
  control.growing = true;
  return control;
}

}  // namespace

CaptureFollower::CaptureFollower(fs::path path, FactOverrides overrides, ReadControl control,
                                 Captures known, std::function<void()> wake)
    : path_(std::move(path)),
      overrides_(std::move(overrides)),
      control_(growing(std::move(control))),
      wake_(std::move(wake)),
      known_(std::move(known)) {
  thread_ = std::jthread([this](std::stop_token stop) { watch(std::move(stop)); });
}

CaptureFollower::~CaptureFollower() {
  thread_.request_stop();
  thread_.join();
}

CaptureFollower::Captures CaptureFollower::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(added_, {});
}

std::string CaptureFollower::take_problem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, {});
}

bool CaptureFollower::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

void CaptureFollower::watch(std::stop_token stop) {
  // Calls may have come between the opening of what is known and now.
  std::optional<CaptureStamp> seen;
  Clock::time_point failing_since;
  bool failing = false;
  bool told = false;
  auto pause = kPause;
  while (!stop.stop_requested()) {
    const CaptureStamp now = CaptureStamp::of(path_);
    if (seen != now || (failing && !told)) {
      const auto start = Clock::now();
      std::string problem;
      try {
        problem = look();
      } catch (const std::exception& error) {
        problem = failure_text(error);
      }
      if (seen != now) told = false;
      seen = now;
      if (!problem.empty() && !failing) failing_since = start;
      failing = !problem.empty();
      if (failing && !told && Clock::now() - failing_since >= kWritingPatience) {
        told = true;
        {
          const std::lock_guard lock(mutex_);
          problem_ = problem;
          // Whoever waits for the first call sees why there is none.
          begun_ = known_.empty();
        }
        wake_();
      }
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
      pause = std::max(kPause, took * kPausesOfWork);
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, pause, [] { return false; });
  }
}

/// Gives what keeps a call that was added from being opened.
std::string CaptureFollower::look() {
  std::string problem;
  if (known_.empty()) {
    if (begun() || !has_capture_begun(path_)) return "";
    // Throws while its first file is still being written.
    Capture::open(path_, overrides_, control_);
    const std::lock_guard lock(mutex_);
    begun_ = true;
  } else {
    std::vector<const Capture*> before;
    for (const auto& capture : known_) before.push_back(capture.get());
    std::optional<Capture> added = Capture::open_added(path_, before, overrides_, control_);
    if (!added) return "";
    require_computable(*added);
    if (added->calls_left_out() > 0 && !added->warnings().empty())
      problem = added->warnings().front();
    known_.push_back(std::make_shared<const Capture>(std::move(*added)));
    const std::lock_guard lock(mutex_);
    added_.push_back(known_.back());
  }
  wake_();
  return problem;
}

}  // namespace attnscope
