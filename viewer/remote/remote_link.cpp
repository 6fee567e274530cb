#include "viewer/remote/remote_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "core/base/version.h"

namespace attnscope {
namespace {

constexpr double kPingSeconds = 2;
constexpr double kSpeedSeconds = 1;
/// Bytes a second below which nothing comes but answers to pings.
constexpr double kLeastRate = 50e3;
/// A connection that says nothing for so long, not even to pings, is lost.
constexpr double kSilenceSeconds = 30;
constexpr double kMostBetweenTries = 30;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RemoteLink::RemoteLink(RemoteProgram program, const std::stop_token& stop)
    : program_(std::move(program)), hello_(open(false, stop)) {}

RemoteLink::~RemoteLink() {
  thread_.request_stop();
  bell_.ring();
  if (source_ != nullptr) source_->set_link_wake([] {});
}

void RemoteLink::fail_before_greeting() {
  const int code = child_->exit_code();
  const std::string meaning = program_.meaning ? program_.meaning(code) : "";
  const std::string said = child_->complaint();
  std::string text = program_.name + ": ";
  if (!meaning.empty()) {
    text += meaning;
  } else if (code >= 0) {
    text += fmt::format("the connection ended with code {} before anything came", code);
  } else {
    text += "the connection ended before anything came";
  }
  if (!said.empty()) text += " (" + one_line(said) + ")";
  throw Error(ErrorCode::unavailable, text);
}

RemoteHello RemoteLink::open(bool again, const std::stop_token& stop) {
  child_ = std::make_unique<ChildLine>(program_.words(again));
  ByteLine& line = child_->line();
  line.set_most_received(2 * kMostFromServer);
  const std::stop_callback ring(stop, [this] { bell_.ring(); });
  std::optional<Greeting> greeted;
  for (bool going_on = true;;) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    if (!greeted) {
      greeted = take_greeting(line.received());
      if (greeted && greeted->protocol != kProtocol) {
        throw Error(
            ErrorCode::unavailable,
            fmt::format("{}: attnscope {} there speaks another protocol than {} here ({} and "
                        "{}): install the same version on both sides",
                        program_.name, one_line(greeted->version), version(), greeted->protocol,
                        kProtocol));
      }
      if (greeted) line.send(to_frame({MessageType::greeted, to_wire(kProtocol)}));
    }
    if (greeted) {
      if (auto message = take_frame(line.received(), kMostFromServer)) {
        if (message->type != MessageType::hello) fail_wire("no hello");
        return read_hello(message->body);
      }
    }
    if (!going_on) {
      if (!greeted) fail_before_greeting();
      child_->exit_code();  // by then it has said why
      const std::string said = child_->complaint();
      throw Error(ErrorCode::unavailable,
                  program_.name + ": " + (said.empty() ? "it ended" : one_line(said)));
    }
    going_on = child_->wait(0.5, bell_.descriptor());
    bell_.quiet();
  }
}

void RemoteLink::serve(RemoteTileSource& source) {
  source_ = &source;
  source.set_link_wake([this] { bell_.ring(); });
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

/// Until the connection is lost: why, one line.
std::string RemoteLink::talk(const std::stop_token& stop) {
  ByteLine& line = child_->line();
  ping_under_way_ = false;
  latency_ = -1;
  counted_at_ = pinged_at_ = now_seconds();
  counted_bytes_ = line.total_received();
  double heard_at = counted_at_;
  for (bool going_on = true; going_on && !stop.stop_requested();) {
    going_on = child_->wait(0.25, bell_.descriptor());
    bell_.quiet();
    const double now = now_seconds();
    const size_t before = line.received().size();
    while (auto message = take_frame(line.received(), kMostFromServer)) {
      heard_at = now;
      if (message->type != MessageType::pong) {
        source_->take(*message);
        // So that what is under way is counted while much comes.
        for (const Message& m : source_->outgoing()) line.send(to_frame(m));
        continue;
      }
      if (!ping_under_way_) fail_wire("an answer to no ping");
      ping_under_way_ = false;
      latency_ = now - from_wire<double>(message->body);
    }
    if (line.received().size() > before) heard_at = now;
    for (const Message& message : source_->outgoing()) line.send(to_frame(message));
    if (!ping_under_way_ && now - pinged_at_ >= kPingSeconds) {
      line.send(to_frame({MessageType::ping, to_wire(now)}));
      ping_under_way_ = true;
      pinged_at_ = now;
    }
    tell_speed(now);
    if (line.unsent() > 0) going_on = going_on && child_->wait(0);
    if (now - heard_at > kSilenceSeconds) return "the other side does not answer";
  }
  const std::string said = child_->complaint();
  return said.empty() ? "the connection was lost" : "the connection was lost: " + said;
}

void RemoteLink::tell_speed(double now) {
  if (now - counted_at_ < kSpeedSeconds) return;
  const size_t total = child_->line().total_received();
  const double rate = static_cast<double>(total - counted_bytes_) / (now - counted_at_);
  counted_at_ = now;
  counted_bytes_ = total;
  const bool moving = rate >= kLeastRate;
  std::string text = latency_ < 0 ? "connected" : fmt::format("{:.0f} ms", latency_ * 1e3);
  if (moving) text += fmt::format(", {:.1f} MB/s", rate / 1e6);
  source_->set_speed(text, moving);
}

void RemoteLink::run(const std::stop_token& stop) {
  double pause = 1;
  std::string why;
  while (!stop.stop_requested()) {
    try {
      if (child_) {
        why = talk(stop);
        pause = 1;
      }
    } catch (const Error& e) {
      why = e.what();
    }
    child_.reset();
    if (stop.stop_requested()) return;
    source_->set_problem(fmt::format("{}; trying again in {:.0f} s", why, pause));
    const double until = now_seconds() + pause;
    ByteLine nothing(-1, -1);
    while (!stop.stop_requested() && now_seconds() < until) {
      nothing.wait(until - now_seconds(), bell_.descriptor());
      bell_.quiet();
    }
    pause = std::min(2 * pause, kMostBetweenTries);
    if (stop.stop_requested()) return;
    try {
      const RemoteHello hello = open(true, stop);
      if (!source_->reopened(hello)) {
        child_.reset();
        return;
      }
    } catch (const Error& e) {
      why = e.what();
      child_.reset();
    }
  }
}

}  // namespace attnscope
