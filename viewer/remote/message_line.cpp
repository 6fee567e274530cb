#include "viewer/remote/message_line.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace attnscope {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ByteMessages::ByteMessages(std::unique_ptr<ByteLine> line) : line_(std::move(line)) {
  line_->set_most_received(2 * kMostFromClient);
  line_->send(greeting());
  line_->wait(0);
}

std::optional<Message> ByteMessages::take() {
  return take_frame(line_->received(), kMostFromClient);
}

void ByteMessages::send(const Message& message) { line_->send(to_frame(message)); }

void serve_messages(TileServer& server, MessageLine& line, const EventBell& bell,
                    const std::stop_token& stop, const std::function<void()>& rung) {
  for (bool going_on = true; going_on && !stop.stop_requested();) {
    while (const auto message = line.take()) server.take(*message);
    if (bell.quiet()) {
      rung();
      server.look();
    }
    // No message is computed while the line does not take it yet.
    while (line.unsent() < static_cast<size_t>(TileServer::kMostUnderWay)) {
      const auto message = server.next(seconds_now());
      if (!message) break;
      line.send(*message);
    }
    const double due = server.due().value_or(seconds_now() + 1);
    going_on = line.wait(std::max(0.0, due - seconds_now()), bell.descriptor());
  }
}

}  // namespace attnscope
