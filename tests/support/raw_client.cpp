#include "tests/support/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>

namespace attnscope::test {
namespace {

using Clock = std::chrono::steady_clock;
/// Seconds of waiting that only a defect exceeds.
constexpr double kLong = 30;

}  // namespace

RawClient::RawClient(const std::string& at, int port)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (descriptor_ < 0 || ::inet_pton(AF_INET, at.c_str(), &address.sin_addr) != 1 ||
      ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close();
    throw std::runtime_error("cannot connect");
  }
}
RawClient::RawClient(const std::string& path)
    : descriptor_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (descriptor_ < 0 ||
      ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close();
    throw std::runtime_error("cannot connect");
  }
}

RawClient::~RawClient() { close(); }

void RawClient::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

bool RawClient::receive_some(double seconds) {
  pollfd waited{descriptor_, POLLIN, 0};
  if (::poll(&waited, 1, static_cast<int>(seconds * 1e3)) <= 0) return false;
  std::array<char, 1 << 16> piece;
  const ssize_t got = ::recv(descriptor_, piece.data(), piece.size(), 0);
  ended_ = got <= 0;
  if (ended_) return false;
  received_.append(piece.data(), static_cast<size_t>(got));
  return true;
}

std::string RawClient::receive_all(double seconds) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (double left = seconds; left > 0 && receive_some(left);) {
    left = std::chrono::duration<double>(until - Clock::now()).count();
  }
  return std::exchange(received_, {});
}

std::string RawClient::receive_answer() {
  size_t end = 0;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_some(kLong)) return std::exchange(received_, {});
  }
  end += 4;
  const std::string length = field_of(received_, "Content-Length");
  end += length.empty() ? 0 : std::stoul(length);
  while (received_.size() < end && receive_some(kLong)) {
  }
  std::string answer = received_.substr(0, end);
  received_.erase(0, end);
  return answer;
}

std::pair<int, std::string> RawClient::receive_part(bool& last) {
  const auto byte = [&](size_t i) {
    return static_cast<uint64_t>(static_cast<uint8_t>(received_[i]));
  };
  const auto have = [&](size_t size) {
    while (received_.size() < size) {
      if (!receive_some(kLong)) return false;
    }
    return true;
  };
  if (!have(2)) return {-1, {}};
  const int opcode = static_cast<int>(byte(0) & 15);
  last = (byte(0) & 0x80) != 0;
  uint64_t length = byte(1) & 127;
  size_t head = 2;
  if (length >= 126) {
    const size_t digits = length == 126 ? 2 : 8;
    head += digits;
    if (!have(head)) return {-1, {}};
    length = 0;
    for (size_t i = 2; i < head; ++i) length = length << 8 | byte(i);
  }
  if (!have(head + length)) return {-1, {}};
  std::string payload = received_.substr(head, length);
  received_.erase(0, head + length);
  return {opcode, payload};
}

std::pair<int, std::string> RawClient::receive_frame() {
  bool last = true;
  auto whole = receive_part(last);
  while (!last) {
    const auto [opcode, more] = receive_part(last);
    if (opcode < 0) return {-1, {}};
    whole.second += more;
  }
  return whole;
}

std::pair<int, std::string> RawClient::receive_close() {
  while (true) {
    const auto [opcode, payload] = receive_frame();
    if (opcode < 0) return {-1, {}};
    if (opcode != kClose) continue;
    if (payload.size() < 2) return {0, {}};
    return {static_cast<uint8_t>(payload[0]) << 8 | static_cast<uint8_t>(payload[1]),
            payload.substr(2)};
  }
}

std::string http_request(const std::string& line, int port,
                         const std::vector<std::string>& fields) {
  std::string text = line + "\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n";
  for (const std::string& field : fields) text += field + "\r\n";
  return text + "\r\n";
}

std::string websocket_request(const std::string& host, const std::string& origin) {
  std::string text = "GET /tiles HTTP/1.1\r\nHost: " + host +
                     "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
                     "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  if (!origin.empty()) text += "Origin: " + origin + "\r\n";
  return text + "\r\n";
}

std::string websocket_request(int port) {
  const std::string host = "127.0.0.1:" + std::to_string(port);
  return websocket_request(host, "http://" + host);
}

std::string websocket_frame(int opcode, std::string_view payload, bool last) {
  std::string frame(1, static_cast<char>((last ? 0x80 : 0) | opcode));
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80 | payload.size());
  } else {
    // The shortest form that holds it.
    const int bits = payload.size() < 65536 ? 16 : 64;
    frame += static_cast<char>(0x80 | (bits == 16 ? 126 : 127));
    for (int shift = bits - 8; shift >= 0; shift -= 8) {
      frame += static_cast<char>(payload.size() >> shift & 0xff);
    }
  }
  constexpr std::string_view kMask = "\x21\x43\x65\x07";
  frame += kMask;
  for (size_t i = 0; i < payload.size(); ++i) {
    frame += static_cast<char>(payload[i] ^ kMask[i % 4]);
  }
  return frame;
}

int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.") && answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : -1;
}

std::string field_of(const std::string& answer, const std::string& name) {
  const std::string head = answer.substr(0, answer.find("\r\n\r\n") + 2);
  const size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const size_t begin = at + 2 + name.size() + 2;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

}  // namespace attnscope::test
