#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attnscope::test {

/// A connection to this machine whose every byte is the test's own.
class RawClient {
 public:
  /// To a port of 127.0.0.1 or of another address of IPv4, or to a Unix socket. Throws
  /// std::runtime_error where it cannot.
  explicit RawClient(int port) : RawClient("127.0.0.1", port) {}
  RawClient(const std::string& address, int port);
  explicit RawClient(const std::string& path);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False: the other side has gone.
  bool send(std::string_view bytes);
  /// The bytes that come until the other side ends the connection, or for so many seconds.
  std::string receive_all(double seconds);
  /// True once the other side was seen to end the connection.
  bool ended() const { return ended_; }
  /// One whole answer of HTTP: its head, and as much of a body as its Content-Length says.
  std::string receive_answer();
  /// The next WebSocket message, of however many frames: opcode and payload; opcode −1: there is
  /// none any more.
  std::pair<int, std::string> receive_frame();
  /// The code and the reason of the close frame that comes, whatever comes before it; −1: none.
  std::pair<int, std::string> receive_close();
  void close();

 private:
  bool receive_some(double seconds);
  std::pair<int, std::string> receive_part(bool& last);

  int descriptor_ = -1;
  bool ended_ = false;
  std::string received_;
};

/// A request's head with these lines after the first; "Host" and the line that ends it are added.
std::string http_request(const std::string& line, int port,
                         const std::vector<std::string>& fields = {});
/// The request that a browser opens a WebSocket with. `origin`: empty leaves it out.
std::string websocket_request(const std::string& host, const std::string& origin);
std::string websocket_request(int port);

enum : int { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9 };
/// A masked frame, as browsers send them.
std::string websocket_frame(int opcode, std::string_view payload, bool last = true);

/// The number in the first line of an answer.
int status_of(const std::string& answer);
/// The value of a field; empty where there is none.
std::string field_of(const std::string& answer, const std::string& name);

}  // namespace attnscope::test
