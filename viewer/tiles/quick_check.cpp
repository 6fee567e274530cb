#include "viewer/tiles/quick_check.h"

#include "core/base/error.h"
#include "core/base/failure_text.h"
#include "io/check/self_check.h"

namespace attnscope {

QuickCheck::QuickCheck(const Capture& capture, const TileBackend& backend, int64_t memory,
                       std::function<void()> finished)
    : capture_(capture),
      backend_(backend),
      budget_(memory),
      finished_(std::move(finished)),
      thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

void QuickCheck::run(std::stop_token stop) {
  try {
    const auto check = quick_check(capture_, {backend_, budget_}, stop);
    if (check) warning_ = quick_check_warning(*check);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) return;
    warning_ = error.what();
  } catch (const std::exception& error) {
    warning_ = failure_text(error);
  }
  done_ = true;
  finished_();
}

}  // namespace attnscope
