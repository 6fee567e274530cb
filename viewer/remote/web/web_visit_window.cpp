#include "viewer/remote/web/web_visit.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <chrono>
#include <string_view>
#include <utility>

#include "viewer/remote/web/web_token.h"

// The part of a visit that is a WebSocket.

namespace attnscope {
namespace {

namespace http_fields = boost::beast::http;
namespace socket = boost::beast::websocket;

/// Before the token: more than it, so that what is too long is a wrong one.
constexpr size_t kMostToken = 256;
/// A frame has a length and a type besides.
constexpr size_t kMostMessage = kMostFromClient + 64;
constexpr size_t kWriteBuffer = size_t{64} << 10;
/// The bytes of a reason that a close frame has room for.
constexpr size_t kMostReason = 123;

constexpr unsigned kProtocolError = 4400;
constexpr unsigned kNoToken = 4401;

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

socket::permessage_deflate deflate_options() {
  socket::permessage_deflate options;
  options.server_enable = true;
  // Tiles have little to do with the tiles before them.
  options.server_no_context_takeover = true;
  options.client_no_context_takeover = true;
  options.compLevel = 1;
  return options;
}

}  // namespace

void WebVisit::open_socket() {
  state_ = State::knocking;
  stream_.expires_never();
  socket_.emplace(std::move(stream_));
  const WebLimits& limits = host_.limits();
  socket_->set_option(deflate_options());
  socket_->set_option(socket::stream_base::timeout{in_milliseconds(limits.request_seconds),
                                                   in_milliseconds(limits.silence_seconds), true});
  socket_->set_option(socket::stream_base::decorator([this](socket::response_type& response) {
    response.set(http_fields::field::server, "attnscope");
    deflates_ = response.count(http_fields::field::sec_websocket_extensions) > 0;
  }));
  socket_->read_message_max(kMostToken);
  set_alarm(limits.token_seconds, &WebVisit::token_overdue);
  host_.opened(*this);
  socket_->async_accept(parser_->get(), [self = shared_from_this()](Code code) {
    if (self->state_ == State::gone) return;
    if (code) return self->drop(code.message());
    self->read_message();
  });
}

void WebVisit::set_alarm(double seconds, void (WebVisit::*then)()) {
  alarm_.expires_after(in_milliseconds(seconds));
  alarm_.async_wait([weak = weak_from_this(), then](Code code) {
    const auto self = weak.lock();
    if (!code && self && self->state_ != State::gone) ((*self).*then)();
  });
}

void WebVisit::token_overdue() {
  if (state_ == State::knocking) leave(kNoToken, "no token came");
}

void WebVisit::read_message() {
  if (reading_ || state_ == State::gone) return;
  reading_ = true;
  socket_->async_read(buffer_, [self = shared_from_this()](Code code, size_t) {
    self->reading_ = false;
    self->take_message(code);
  });
}

void WebVisit::take_message(Code code) {
  if (state_ == State::gone) return;
  if (code) {
    // A WebSocket that is being closed is waited for by who closes it.
    if (state_ == State::leaving && code == boost::asio::error::operation_aborted) return;
    if (code == socket::error::closed) return drop("it was closed");
    if (code == boost::beast::error::timeout) return drop("it does not answer");
    const bool broke_rules = code.category() == make_error_code(socket::error::closed).category() ||
                             code == socket::condition::protocol_violation;
    return drop(broke_rules ? code.message() : "the connection was lost");
  }
  std::string bytes = boost::beast::buffers_to_string(buffer_.data());
  buffer_.clear();
  if (state_ == State::leaving) return;
  if (state_ == State::knocking) return prove(bytes);
  if (!socket_->got_binary()) return leave(kProtocolError, "a message is binary");
  arrived_ = std::move(bytes);
  host_.stirred();
}

void WebVisit::prove(const std::string& token) {
  if (!socket_->got_text() || !is_web_token(token, host_.token())) {
    return leave(kNoToken, "this is not the token");
  }
  alarm_.cancel();
  state_ = State::looking;
  // It need not stop what the WebSocket refuses, which says so to the other side.
  buffer_ = boost::beast::flat_buffer(2 * kMostMessage);
  socket_->read_message_max(kMostMessage);
  socket_->write_buffer_bytes(kWriteBuffer);
  std::string line = greeting();
  enqueue({line.substr(1, line.size() - 2), true});
  read_message();
  host_.proved(*this);
}

std::optional<std::string> WebVisit::take() {
  if (!arrived_) return std::nullopt;
  std::optional<std::string> taken = std::exchange(arrived_, std::nullopt);
  if (state_ == State::looking) read_message();
  return taken;
}

void WebVisit::send(const Message& message) {
  if (state_ != State::looking) return;
  enqueue({to_frame(message, deflates_ ? FramePacking::plain : FramePacking::deflated), false});
}

void WebVisit::enqueue(Outgoing outgoing) {
  unsent_ += outgoing.bytes.size();
  outgoing_.push_back(std::move(outgoing));
  if (outgoing_.size() == 1) write_next();
}

void WebVisit::write_next() {
  const Outgoing& next = outgoing_.front();
  socket_->text(next.text);
  socket_->async_write(boost::asio::buffer(next.bytes),
                       [self = shared_from_this()](Code code, size_t) {
                         if (self->state_ == State::gone) return;
                         self->unsent_ -= self->outgoing_.front().bytes.size();
                         self->outgoing_.pop_front();
                         // Its reader finds out why.
                         if (code || self->state_ != State::looking) return;
                         if (!self->outgoing_.empty()) self->write_next();
                         self->host_.stirred();
                       });
}

void WebVisit::leave(unsigned code, const std::string& why) {
  if (state_ == State::leaving || state_ == State::gone) return;
  why_ = why;
  state_ = State::leaving;
  // Who does not read does not hear of it either.
  set_alarm(host_.limits().close_seconds, &WebVisit::leave_overdue);
  const std::string reason = one_line(why).substr(0, kMostReason);
  socket_->async_close({static_cast<socket::close_code>(code), reason},
                       [self = shared_from_this()](Code) { self->drop(self->why_); });
  host_.stirred();
}

}  // namespace attnscope
