#include "tests/viewer/remote/web/browser_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "tests/viewer/remote/web/socket_bytes.h"

namespace attnscope::test {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;

namespace {

constexpr double kLong = 30;

}  // namespace

struct BrowserClient::Line {
  net::io_context io{1};
  websocket::stream<beast::tcp_stream> socket{io};
  beast::flat_buffer buffer;
  std::string greeting, why;
  size_t bytes = 0;
  bool pending = false, done = false;
  beast::error_code code;

  /// Runs what is under way until it is done; false: it is not, after so many seconds.
  bool run(const bool& finished, double seconds) {
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(seconds));
    io.restart();
    while (!finished && io.run_one_until(until) > 0) {
    }
    return finished;
  }
  template <class Begin>
  void do_now(const char* what, const Begin& begin) {
    bool finished = false;
    beast::error_code error;
    begin([&](beast::error_code e, size_t = 0) {
      error = e;
      finished = true;
    });
    if (!run(finished, kLong)) throw std::runtime_error(std::string(what) + ": nothing happens");
    if (error) throw std::runtime_error(std::string(what) + ": " + error.message());
  }
  void begin_reading() {
    if (pending) return;
    pending = true;
    done = false;
    socket.async_read(buffer, [this](beast::error_code e, size_t) {
      code = e;
      done = true;
    });
  }
  /// A whole message, or nothing.
  std::optional<std::string> read(double seconds) {
    begin_reading();
    if (!run(done, seconds)) return std::nullopt;
    pending = false;
    if (code) {
      const auto& reason = socket.reason();
      why = code == websocket::error::closed
                ? std::to_string(reason.code) + " " + std::string(reason.reason.c_str())
                : code.message();
      return std::nullopt;
    }
    std::string text = beast::buffers_to_string(buffer.data());
    buffer.clear();
    return text;
  }
};

BrowserClient::BrowserClient(int port, const std::string& token, bool deflates)
    : line_(std::make_unique<Line>()) {
  Line& line = *line_;
  const std::string host = "127.0.0.1:" + std::to_string(port);
  websocket::permessage_deflate options;
  options.client_enable = deflates;
  line.socket.set_option(options);
  line.socket.set_option(websocket::stream_base::decorator([&](websocket::request_type& request) {
    request.set(beast::http::field::origin, "http://" + host);
  }));
  line.socket.read_message_max(kMostFromServer);
  const net::ip::tcp::endpoint there(net::ip::make_address("127.0.0.1"),
                                     static_cast<unsigned short>(port));
  line.do_now("connect", [&](auto handler) {
    line.socket.next_layer().async_connect(there, std::move(handler));
  });
  line.do_now("handshake", [&](auto handler) {
    line.socket.async_handshake(host, "/tiles", std::move(handler));
  });
  line.socket.text(true);
  line.do_now("token", [&](auto handler) {
    line.socket.async_write(net::buffer(token), std::move(handler));
  });
  const auto greeted = line.read(kLong);
  if (!greeted) throw std::runtime_error("no greeting: " + line.why);
  if (!line.socket.got_text()) throw std::runtime_error("a greeting that is no text");
  line.greeting = *greeted;
}
BrowserClient::~BrowserClient() = default;

const std::string& BrowserClient::greeting() const { return line_->greeting; }
std::string BrowserClient::why() const { return line_->why; }
size_t BrowserClient::received_bytes() const { return line_->bytes; }

size_t BrowserClient::wire_bytes() const {
  return received_bytes_of(line_->socket.next_layer().socket().native_handle());
}

void BrowserClient::send(const Message& message) {
  line_->socket.binary(true);
  const std::string frame = to_frame(message, FramePacking::plain);
  line_->do_now("send", [&](auto handler) {
    line_->socket.async_write(net::buffer(frame), std::move(handler));
  });
}

std::optional<Message> BrowserClient::receive_within(double seconds) {
  auto bytes = line_->read(seconds);
  if (!bytes) return std::nullopt;
  if (!line_->socket.got_binary()) throw std::runtime_error("a message that is text");
  line_->bytes += bytes->size();
  auto message = take_frame(*bytes, kMostFromServer);
  if (!message || !bytes->empty()) throw std::runtime_error("a frame that is not one message");
  return message;
}

std::optional<Message> BrowserClient::receive() { return receive_within(kLong); }

void BrowserClient::close() {
  line_->do_now("close", [&](auto handler) {
    line_->socket.async_close(websocket::close_code::normal, std::move(handler));
  });
}

}  // namespace attnscope::test
