#include "viewer/app/notices.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr double kNoticeSeconds = 6;
constexpr size_t kMostMessages = 20;

}  // namespace

void Notices::fail(const std::string& title, const std::string& message) {
  failure_ = Failure{title, one_line(message)};
  keep(title + ": " + failure_->message);
}

void Notices::tell(const std::string& what, double now) {
  notice_ = one_line(what);
  until_ = now + kNoticeSeconds;
  keep(notice_);
}

void Notices::keep(const std::string& message) {
  const std::time_t now = std::time(nullptr);
  std::tm at = {};
  localtime_r(&now, &at);
  kept_.push_front(fmt::format("{:02}:{:02}:{:02}  {}", at.tm_hour, at.tm_min, at.tm_sec, message));
  if (kept_.size() > kMostMessages) kept_.pop_back();
}

void Notices::show_kept() {
  std::string text;
  for (const std::string& message : kept_) text += (text.empty() ? "" : "\n") + message;
  failure_ = Failure{"Told lately", text.empty() ? "nothing yet" : text, false};
}

bool Notices::forget(double now) {
  if (notice_.empty() || now < until_) return false;
  notice_.clear();
  return true;
}

std::optional<double> Notices::left(double now) const {
  return notice_.empty() ? std::nullopt : std::optional(std::max(0.0, until_ - now));
}

}  // namespace attnscope
