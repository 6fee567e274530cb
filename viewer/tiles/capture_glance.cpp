#include "viewer/tiles/capture_glance.h"

#include "core/base/error.h"
#include "io/check/self_check.h"

namespace attnscope {

CaptureGlance::CaptureGlance(const Capture& capture, std::function<void()> finished)
    : capture_(capture),
      finished_(std::move(finished)),
      thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

void CaptureGlance::run(std::stop_token stop) {
  try {
    if (const auto check = glance_at(capture_, stop)) warning_ = glance_warning(*check);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) return;
    warning_ = error.what();
  }
  done_ = true;
  finished_();
}

}  // namespace attnscope
