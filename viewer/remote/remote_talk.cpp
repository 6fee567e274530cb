#include "viewer/remote/remote_talk.h"

#include <fmt/format.h>

#include <algorithm>

namespace attnscope {
namespace {

constexpr double kPingSeconds = 2;
constexpr double kSpeedSeconds = 1;
/// Bytes a second below which nothing comes but answers to pings.
constexpr double kLeastRate = 50e3;
/// A connection that says nothing for so long, not even to pings, is lost.
constexpr double kSilenceSeconds = 30;
constexpr double kMostBetweenTries = 30;

}  // namespace

RemoteTalk::RemoteTalk(RemoteTileSource& source, double now, size_t received)
    : source_(source), heard_at_(now), pinged_at_(now), counted_at_(now), counted_(received) {}

void RemoteTalk::take(const Message& message, double now) {
  heard_at_ = now;
  if (message.type != MessageType::pong) {
    source_.take(message);
    return;
  }
  if (!ping_under_way_) fail_wire("an answer to no ping");
  ping_under_way_ = false;
  latency_ = now - from_wire<double>(message.body);
}

std::vector<Message> RemoteTalk::say(double now, size_t received) {
  std::vector<Message> messages = source_.outgoing();
  if (!ping_under_way_ && now - pinged_at_ >= kPingSeconds) {
    messages.push_back({MessageType::ping, to_wire(now)});
    ping_under_way_ = true;
    pinged_at_ = now;
  }
  tell_speed(now, received);
  return messages;
}

/// Whoever sleeps longer than that between two looks has sent no ping meanwhile.
bool RemoteTalk::is_silent(double now) const {
  return ping_under_way_ && now - std::max(heard_at_, pinged_at_) > kSilenceSeconds;
}

void RemoteTalk::tell_speed(double now, size_t received) {
  if (now - counted_at_ < kSpeedSeconds) return;
  const double rate = static_cast<double>(received - counted_) / (now - counted_at_);
  counted_at_ = now;
  counted_ = received;
  const bool moving = rate >= kLeastRate;
  std::string text = latency_ < 0 ? "connected" : fmt::format("{:.0f} ms", latency_ * 1e3);
  if (moving) text += fmt::format(", {:.1f} MB/s", rate / 1e6);
  source_.set_speed(text, moving);
}

double next_pause(double before) {
  return before <= 0 ? 1 : std::min(2 * before, kMostBetweenTries);
}

}  // namespace attnscope
