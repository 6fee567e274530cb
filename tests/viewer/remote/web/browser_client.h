#pragma once

#include <memory>
#include <optional>
#include <string>

#include "viewer/remote/messages.h"

namespace attnscope::test {

/// Acts as a page in a browser, by Boost.Beast's own client: a WebSocket, the token, messages.
/// It waits for whatever it asks for, half a minute at most. Throws std::runtime_error where the
/// other side does not do what is expected of it.
class BrowserClient {
 public:
  /// Opens the WebSocket and brings the token; the greeting has come then. `deflates`: it offers
  /// to, as browsers do.
  BrowserClient(int port, const std::string& token, bool deflates = true);
  ~BrowserClient();

  /// Without the newlines that it has as bytes.
  const std::string& greeting() const;
  void send(const Message& message);
  /// The next message; nothing once the other side has closed, and why() says with what.
  std::optional<Message> receive();
  /// As receive(), but nothing where none comes within so many seconds.
  std::optional<Message> receive_within(double seconds);
  /// "4409 another window has taken over".
  std::string why() const;
  /// Bytes of the messages that came, before what the WebSocket itself deflates.
  size_t received_bytes() const;
  /// Bytes that the connection brought.
  size_t wire_bytes() const;
  void close();

 private:
  struct Line;
  const std::unique_ptr<Line> line_;
};

}  // namespace attnscope::test
