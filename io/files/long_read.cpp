#include "io/files/long_read.h"

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Shorter reads are over before anybody asks.
constexpr int64_t kReportedBytes = int64_t{64} << 20;

std::atomic<bool> stop_requested{false};

LongReadReporter& reporter() {
  static LongReadReporter current;
  return current;
}

}  // namespace

LongReadStop::LongReadStop(std::stop_token stop)
    : callback_(std::move(stop), [] { stop_requested = true; }) {}

LongReadStop::~LongReadStop() { stop_requested = false; }

void set_long_read_reporter(LongReadReporter next) { reporter() = std::move(next); }

void check_long_read_stop(const std::string& what) {
  if (stop_requested) throw Error(ErrorCode::interrupted, "interrupted while reading " + what);
}

LongRead::LongRead(const std::string& what, int64_t bytes) : what_(what) {
  if (reporter() && bytes >= kReportedBytes) progress_ = reporter()(what, bytes);
}

void LongRead::update(int64_t bytes_done) {
  check_long_read_stop(what_);
  if (progress_) progress_->update(bytes_done);
}

}  // namespace attnscope
