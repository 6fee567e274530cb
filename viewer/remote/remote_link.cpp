#include "viewer/remote/remote_link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "core/base/version.h"
#include "viewer/remote/remote_talk.h"

namespace attnscope {
namespace {

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
  double heard_at = now_seconds();
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
    const size_t before = child_->total_received();
    going_on = child_->wait(std::min(0.5, program_.silent_seconds), bell_.descriptor());
    bell_.quiet();
    // Before the greeting a person may be asked for a password.
    const bool may_be_asked = !greeted && !again && isatty(STDIN_FILENO) == 1;
    if (child_->total_received() > before || may_be_asked) heard_at = now_seconds();
    if (going_on && now_seconds() - heard_at > program_.silent_seconds) {
      throw Error(ErrorCode::unavailable,
                  fmt::format("{}: nothing came for {:.0f} s{}", program_.name,
                              program_.silent_seconds, greeted ? ", once it had greeted" : ""));
    }
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
  RemoteTalk talk(*source_, now_seconds(), line.total_received());
  for (bool going_on = true; going_on && !stop.stop_requested();) {
    going_on = child_->wait(0.25, bell_.descriptor());
    bell_.quiet();
    const double now = now_seconds();
    const size_t before = line.received().size();
    while (auto message = take_frame(line.received(), kMostFromServer)) {
      talk.take(*message, now);
      // So that what is under way is counted while much comes.
      for (const Message& m : source_->outgoing()) line.send(to_frame(m));
    }
    if (line.received().size() > before) talk.heard(now);
    for (const Message& m : talk.say(now, line.total_received())) line.send(to_frame(m));
    if (line.unsent() > 0) going_on = going_on && child_->wait(0);
    if (talk.is_silent(now)) return "the other side does not answer";
  }
  const std::string said = child_->complaint();
  return said.empty() ? "the connection was lost" : "the connection was lost: " + said;
}

void RemoteLink::run(const std::stop_token& stop) {
  double pause = next_pause(0);
  std::string why;
  while (!stop.stop_requested()) {
    try {
      if (child_) {
        why = talk(stop);
        pause = next_pause(0);
      }
    } catch (const Error& e) {
      why = e.what();
    }
    child_.reset();
    if (stop.stop_requested()) return;
    source_->count_loss(why);
    source_->set_problem(fmt::format("{}; trying again in {:.0f} s", why, pause));
    const double until = now_seconds() + pause;
    ByteLine nothing(-1, -1);
    while (!stop.stop_requested() && now_seconds() < until) {
      nothing.wait(until - now_seconds(), bell_.descriptor());
      bell_.quiet();
    }
    pause = next_pause(pause);
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
