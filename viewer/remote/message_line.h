#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "viewer/remote/byte_line.h"
#include "viewer/remote/messages.h"
#include "viewer/remote/tile_server.h"

namespace attnscope {

/// The way of messages between a server and one window, whatever brings them. Not thread-safe.
class MessageLine {
 public:
  virtual ~MessageLine() = default;
  /// The next message that came from the window; nothing: none has. Throws Error(file) where what
  /// came is none, or longer than kMostFromClient.
  virtual std::optional<Message> take() = 0;
  virtual void send(const Message& message) = 0;
  /// Bytes of what was sent that the window's side has not taken yet.
  virtual size_t unsent() const = 0;
  /// Brings and takes what it can, and waits for that, for `wake` to become readable (−1: nothing),
  /// or so many seconds. False: the window has gone, or another one has come in its place.
  virtual bool wait(double seconds, int wake) = 0;
};

/// Messages as a stream of bytes, after the line greeting(), which is sent at once.
class ByteMessages : public MessageLine {
 public:
  explicit ByteMessages(std::unique_ptr<ByteLine> line);
  std::optional<Message> take() override;
  void send(const Message& message) override;
  size_t unsent() const override { return line_->unsent(); }
  bool wait(double seconds, int wake) override { return line_->wait(seconds, wake); }
  /// ByteLine's.
  const std::string& problem() const { return line_->problem(); }

 private:
  std::unique_ptr<ByteLine> line_;
};

/// Brings a server's messages to one window and the window's to it, until the line ends or a stop
/// is requested, which `bell` has to ring for, as it does for whatever is new in the source;
/// `rung` is called then. Throws what TileServer::take() and MessageLine::take() throw.
void serve_messages(TileServer& server, MessageLine& line, const EventBell& bell,
                    const std::stop_token& stop, const std::function<void()>& rung);

}  // namespace attnscope
