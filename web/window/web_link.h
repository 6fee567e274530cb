#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "viewer/remote/remote_talk.h"

namespace attnscope {

/// The way from the page to its server: a WebSocket that is opened again when it was lost, after
/// 1, 2, 4 … 30 seconds. Frames are those of messages.h, one a message of the socket; before them
/// stand, as texts, the token of this side and the greeting of the other. All on the page's thread.
class WebLink {
 public:
  /// The state of the way to the server, as the page tells it.
  enum class State {
    connecting,  ///< for the first time
    lost,        ///< it is tried again; what was shown can be looked at
    open,
    refused,  ///< the token is wrong
    taken,    ///< somebody else looks now
    ended,    ///< for good: the text says why
  };
  struct Handlers {
    /// The server's first message came for the first time: gives the source of its maps, which
    /// lives as long as the link.
    std::function<RemoteTileSource*(RemoteHello)> opened;
    std::function<void(State, const std::string& text)> changed;
  };

  /// Begins to connect.
  WebLink(std::string address, std::string token, Handlers handlers);
  ~WebLink();
  WebLink(const WebLink&) = delete;
  WebLink& operator=(const WebLink&) = delete;

  /// Tries at once, whatever happened before, with this token from now on.
  void connect(std::string token);

 private:
  struct Calls;  ///< what the browser calls

  void connect();
  void take_text(std::string text);
  void take_bytes(std::string bytes);
  void take_hello(const Message& message);
  void closed(int code, const std::string& reason);
  void end(State state, const std::string& text);
  void drop();
  void lose(const std::string& why);
  void flush();
  void tick();
  void send(const Message& message);

  const std::string address_;
  std::string token_;
  const Handlers handlers_;
  int socket_ = 0;  ///< 0: none
  bool greeted_ = false, said_hello_ = false;
  RemoteTileSource* source_ = nullptr;
  std::optional<RemoteTalk> talk_;
  size_t received_ = 0;
  double pause_ = 0;
  int retry_ = -1, ticking_ = -1;  ///< timers; below 0: none
};

}  // namespace attnscope
