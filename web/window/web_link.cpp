#include "web/window/web_link.h"

#include <emscripten/emscripten.h>
#include <emscripten/html5.h>
#include <emscripten/websocket.h>
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/version.h"

namespace attnscope {
namespace {

/// Codes with which the server ends a connection.
constexpr int kProtocolCode = 4400, kTokenCode = 4401, kTakenCode = 4409;
constexpr double kTickMs = 1000;

double seconds_now() { return emscripten_get_now() / 1000; }

}  // namespace

/// Each call of a socket that was given up is left alone.
struct WebLink::Calls {
  static EM_BOOL opened(int, const EmscriptenWebSocketOpenEvent* e, void* self) {
    WebLink& link = *static_cast<WebLink*>(self);
    if (e->socket == link.socket_)
      emscripten_websocket_send_utf8_text(e->socket, link.token_.c_str());
    return EM_TRUE;
  }
  static EM_BOOL message(int, const EmscriptenWebSocketMessageEvent* e, void* self) {
    WebLink& link = *static_cast<WebLink*>(self);
    if (e->socket != link.socket_) return EM_TRUE;
    const auto* const bytes = reinterpret_cast<const char*>(e->data);
    try {
      if (e->isText) {
        // The count has the 0 at the end.
        link.take_text(std::string(bytes));
      } else {
        link.take_bytes(std::string(bytes, e->numBytes));
      }
    } catch (const Error& error) {
      link.lose(error.what());
    }
    return EM_TRUE;
  }
  static EM_BOOL closed(int, const EmscriptenWebSocketCloseEvent* e, void* self) {
    WebLink& link = *static_cast<WebLink*>(self);
    if (e->socket == link.socket_) link.closed(e->code, e->reason);
    return EM_TRUE;
  }
  static void retry(void* self) {
    WebLink& link = *static_cast<WebLink*>(self);
    link.retry_ = -1;
    link.connect();
  }
  static void tick(void* self) { static_cast<WebLink*>(self)->tick(); }
};

WebLink::WebLink(std::string address, std::string token, Handlers handlers)
    : address_(std::move(address)), token_(std::move(token)), handlers_(std::move(handlers)) {
  handlers_.changed(State::connecting, "");
  connect();
}

WebLink::~WebLink() {
  if (source_ != nullptr) source_->set_link_wake([] {});
  if (retry_ >= 0) emscripten_clear_timeout(retry_);
  drop();
}

void WebLink::connect(std::string token) {
  token_ = std::move(token);
  pause_ = 0;
  connect();
}

void WebLink::connect() {
  if (retry_ >= 0) emscripten_clear_timeout(std::exchange(retry_, -1));
  drop();
  EmscriptenWebSocketCreateAttributes wanted{address_.c_str(), nullptr, EM_TRUE};
  socket_ = emscripten_websocket_new(&wanted);
  if (socket_ <= 0) {
    socket_ = 0;
    end(State::ended, "the browser opens no WebSocket to " + address_);
    return;
  }
  emscripten_websocket_set_onopen_callback(socket_, this, Calls::opened);
  emscripten_websocket_set_onmessage_callback(socket_, this, Calls::message);
  emscripten_websocket_set_onclose_callback(socket_, this, Calls::closed);
}

/// Away with the connection, whatever becomes of it.
void WebLink::drop() {
  if (ticking_ >= 0) emscripten_clear_interval(std::exchange(ticking_, -1));
  talk_.reset();
  greeted_ = said_hello_ = false;
  const int old = std::exchange(socket_, 0);
  if (old == 0) return;
  emscripten_websocket_close(old, 1000, "");
  emscripten_websocket_delete(old);
}

void WebLink::take_text(std::string text) {
  if (greeted_) fail_wire("a text after the greeting");
  std::string line = "\n" + std::move(text) + "\n";
  const auto greeting = take_greeting(line);
  if (!greeting) fail_wire("a greeting that is none");
  // The page and what serves it are parts of one program, unless that was started anew.
  if (greeting->protocol != kProtocol || greeting->version != version()) {
    end(State::ended,
        fmt::format("The server is attnscope {} now, and this page is of {}: load it again.",
                    one_line(greeting->version), version()));
    return;
  }
  greeted_ = true;
  send({MessageType::greeted, to_wire(kProtocol)});
}

void WebLink::take_bytes(std::string bytes) {
  if (!greeted_) fail_wire("no greeting");
  received_ += bytes.size();
  while (auto message = take_frame(bytes, kMostFromServer)) {
    if (!said_hello_) {
      take_hello(*message);
      if (!said_hello_) return;
    } else {
      talk_->take(*message, seconds_now());
    }
  }
  if (!bytes.empty()) fail_wire("a frame that is not whole");
  flush();
}

void WebLink::take_hello(const Message& message) {
  if (message.type != MessageType::hello) fail_wire("no hello");
  RemoteHello hello = read_hello(message.body);
  if (source_ != nullptr) {
    if (!source_->reopened(hello)) {
      end(State::ended,
          "The server holds other maps than before the connection was lost: load the page again.");
      return;
    }
  } else {
    source_ = handlers_.opened(std::move(hello));
    source_->set_link_wake([this] { flush(); });
  }
  said_hello_ = true;
  pause_ = 0;
  talk_.emplace(*source_, seconds_now(), received_);
  ticking_ = emscripten_set_interval(Calls::tick, kTickMs, this);
  handlers_.changed(State::open, "");
}

void WebLink::send(const Message& message) {
  if (socket_ == 0) return;
  std::string frame = to_frame(message);
  emscripten_websocket_send_binary(socket_, frame.data(), static_cast<uint32_t>(frame.size()));
}

void WebLink::flush() {
  if (!talk_) return;
  for (const Message& message : talk_->say(seconds_now(), received_)) send(message);
}

void WebLink::tick() {
  if (!talk_) return;
  if (talk_->is_silent(seconds_now())) {
    lose("the server does not answer");
    return;
  }
  flush();
}

void WebLink::closed(int code, const std::string& reason) {
  switch (code) {
    case kTokenCode:
      return end(State::refused, one_line(reason));
    case kTakenCode:
      return end(State::taken, one_line(reason));
    case kProtocolCode:
      return end(State::ended,
                 "The server takes what this page says for no message: " + one_line(reason));
    default:
      return lose(reason.empty() ? "the connection was lost" : one_line(reason));
  }
}

/// No further attempt is made by itself.
void WebLink::end(State state, const std::string& text) {
  drop();
  if (source_ != nullptr)
    source_->set_problem(text.empty() ? "there is no connection any more" : text);
  handlers_.changed(state, text);
}

void WebLink::lose(const std::string& why) {
  drop();
  pause_ = next_pause(pause_);
  const std::string text = fmt::format("{}; trying again in {:.0f} s", why, pause_);
  if (source_ != nullptr) source_->set_problem(text);
  handlers_.changed(source_ != nullptr ? State::lost : State::connecting, text);
  retry_ = static_cast<int>(emscripten_set_timeout(Calls::retry, pause_ * 1000, this));
}

}  // namespace attnscope
