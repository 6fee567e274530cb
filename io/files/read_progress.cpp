#include "io/files/read_progress.h"

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Shorter reads are over before anybody asks.
constexpr int64_t kReportedBytes = int64_t{64} << 20;

}  // namespace

void check_read_stop(const ReadControl& control, const std::string& what) {
  if (control.stop.stop_requested()) {
    throw Error(ErrorCode::interrupted, "interrupted while reading " + what);
  }
}

LongRead::LongRead(const ReadControl& control, std::string what, int64_t bytes)
    : control_(control), what_(std::move(what)) {
  if (control.reporter && bytes >= kReportedBytes) progress_ = control.reporter(what_, bytes);
}

void LongRead::update(int64_t bytes_done) {
  check_read_stop(control_, what_);
  if (progress_) progress_->update(bytes_done);
}

}  // namespace attnscope
