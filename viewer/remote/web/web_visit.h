#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "viewer/remote/messages.h"
#include "viewer/remote/web/web_limits.h"
#include "viewer/remote/web/web_page.h"

namespace attnscope {

using WebIo = boost::asio::io_context;
using WebSocketOfAnyKind = boost::asio::generic::stream_protocol::socket;

/// A connection: requests for the page, perhaps a WebSocket, which perhaps becomes a window. It
/// lives while something is under way. Everything happens on the thread that runs the context.
class WebVisit : public std::enable_shared_from_this<WebVisit> {
 public:
  /// The server of the visits: its page, token and limits, and the events that it is told.
  class Host {
   public:
    virtual ~Host() = default;
    virtual const WebPage& page() const = 0;
    virtual const std::string& token() const = 0;
    virtual const WebLimits& limits() const = 0;
    /// It opened a WebSocket.
    virtual void opened(WebVisit& visit) = 0;
    /// It brought the token.
    virtual void proved(WebVisit& visit) = 0;
    /// Something came of a window, or could be sent to it.
    virtual void stirred() = 0;
    /// It is over.
    virtual void ended(WebVisit& visit) = 0;
  };
  enum class State { asking, knocking, looking, leaving, gone };

  /// The host outlives it.
  WebVisit(WebSocketOfAnyKind socket, Host& host);
  void begin() { read_request(); }
  State state() const { return state_; }
  /// Ends it at once.
  void drop(const std::string& why);

  // Of a window:

  /// The message that came and is not taken yet; the next one is read once it is.
  std::optional<std::string> take();
  void send(const Message& message);
  size_t unsent() const { return unsent_; }
  /// Takes leave with a close code and a reason.
  void leave(unsigned code, const std::string& why);
  /// Why it is leaving or gone; empty: it is not.
  const std::string& why() const { return why_; }

 private:
  using Code = boost::system::error_code;
  using Body = boost::beast::http::span_body<const unsigned char>;
  using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
  using Request = boost::beast::http::request<boost::beast::http::empty_body>;
  using Parser = boost::beast::http::request_parser<boost::beast::http::empty_body>;
  using Response = boost::beast::http::response<Body>;
  struct Outgoing {
    std::string bytes;
    bool text = false;
  };

  Stream& stream();
  void read_request();
  void take_request(Code error);
  void refuse_request(Code error);
  void answer(WebAnswer answer, bool stays, unsigned version);
  /// Reads what still comes, so that what was answered gets there.
  void drain();
  void open_socket();
  void read_message();
  void take_message(Code error);
  void prove(const std::string& token);
  void enqueue(Outgoing outgoing);
  void write_next();
  void set_alarm(double seconds, void (WebVisit::*then)());
  void token_overdue();
  void leave_overdue() { drop(why_); }

  Host& host_;
  State state_ = State::asking;
  std::string why_;
  Stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<WebAnswer> answered_;  ///< what response_ is of
  std::optional<Response> response_;
  size_t drained_ = 0;
  std::optional<boost::beast::websocket::stream<Stream>> socket_;
  boost::asio::steady_timer alarm_;
  bool deflates_ = false;  ///< the WebSocket itself
  bool reading_ = false;
  std::optional<std::string> arrived_;
  std::deque<Outgoing> outgoing_;
  size_t unsent_ = 0;
};

}  // namespace attnscope
