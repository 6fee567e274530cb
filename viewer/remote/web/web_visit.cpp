#include "viewer/remote/web/web_visit.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace attnscope {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr uint32_t kMostHeader = 8 << 10;
/// The most bytes that are read from a client after its last answer, before the connection closes.
constexpr size_t kMostDrained = size_t{256} << 10;
constexpr double kDrainSeconds = 2;
constexpr int kNotModified = 304;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

template <class Message>
std::vector<std::string_view> fields_of(const Message& message, http::field name) {
  std::vector<std::string_view> all;
  const auto [begin, end] = message.equal_range(name);
  for (auto at = begin; at != end; ++at) all.push_back(view(at->value()));
  return all;
}

}  // namespace

WebVisit::WebVisit(WebSocketOfAnyKind socket, Host& host)
    : host_(host),
      stream_(std::move(socket)),
      buffer_(kMostHeader),
      alarm_(stream_.get_executor()) {}

WebVisit::Stream& WebVisit::stream() { return socket_ ? socket_->next_layer() : stream_; }

void WebVisit::drop(const std::string& why) {
  if (state_ == State::gone) return;
  if (why_.empty()) why_ = why;
  state_ = State::gone;
  alarm_.cancel();
  stream().close();
  host_.ended(*this);
}

void WebVisit::read_request() {
  parser_.emplace();
  parser_->header_limit(kMostHeader);
  parser_->body_limit(0);
  // For the whole of it, however slowly it comes.
  stream_.expires_after(milliseconds(host_.limits().request_seconds));
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](Code error, size_t) { self->take_request(error); });
}

void WebVisit::refuse_request(Code error) {
  const bool too_long = error == http::error::header_limit || error == http::error::buffer_overflow;
  const bool has_body = error == http::error::body_limit || error == http::error::unexpected_body;
  answer(host_.page().refusal(too_long ? 431 : has_body ? 413 : 400, error.message()), false, 11);
}

void WebVisit::take_request(Code error) {
  if (state_ == State::gone) return;
  const bool ended = error == http::error::end_of_stream || error == http::error::partial_message;
  const bool wrong = error.category() == make_error_code(http::error::bad_method).category();
  if (wrong && !ended) return refuse_request(error);
  if (error) return drop(error.message());
  const Request& request = parser_->get();
  WebRequest asked;
  asked.method = view(request.method_string());
  asked.target = view(request.target());
  asked.hosts = fields_of(request, http::field::host);
  asked.origins = fields_of(request, http::field::origin);
  asked.etags = fields_of(request, http::field::if_none_match);
  asked.upgrade = beast::websocket::is_upgrade(request);
  WebAnswer answered = host_.page().answer(asked);
  if (answered.opens_line) {
    // Nobody speaks before the line is open.
    if (buffer_.size() == 0) return open_socket();
    answered = host_.page().refusal(400, "something came before the WebSocket was open");
  }
  const bool stays = request.keep_alive() && !asked.upgrade;
  answer(std::move(answered), stays, request.version());
}

void WebVisit::answer(WebAnswer made, bool stays, unsigned version) {
  answered_ = std::move(made);
  const WebAnswer& a = *answered_;
  response_.emplace(static_cast<http::status>(a.status), version);
  for (const auto& [name, value] : a.fields) response_->insert(name, value);
  response_->keep_alive(stays);
  if (a.status != kNotModified) response_->content_length(a.length);
  const auto* text = reinterpret_cast<const unsigned char*>(a.text.data());
  response_->body() = a.text.empty() ? Body::value_type(a.body.data(), a.body.size())
                                     : Body::value_type(text, a.text.size());
  stream_.expires_after(milliseconds(host_.limits().answer_seconds));
  http::async_write(stream_, *response_, [self = shared_from_this(), stays](Code error, size_t) {
    if (self->state_ == State::gone) return;
    if (error) return self->drop(error.message());
    if (stays) return self->read_request();
    self->stream_.expires_after(milliseconds(kDrainSeconds));
    Code ignored;
    self->stream_.socket().shutdown(WebSocketOfAnyKind::shutdown_send, ignored);
    self->drain();
  });
}

void WebVisit::drain() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kMostHeader),
                          [self = shared_from_this()](Code error, size_t got) {
                            self->drained_ += got;
                            if (error || self->drained_ > kMostDrained)
                              return self->drop("answered");
                            self->drain();
                          });
}

}  // namespace attnscope
