#pragma once

#include <cstddef>

namespace attnscope {

/// How long things may take and how many there may be.
struct WebLimits {
  double request_seconds = 10;  ///< for a request to come, also the next one of a connection
  double answer_seconds = 60;   ///< for an answer to be taken
  double token_seconds = 5;     ///< from the opening of a WebSocket on
  double silence_seconds = 30;  ///< of a window, before it is asked whether it is there; then again
  double close_seconds = 1;     ///< for a window to take leave
  /// Connections of whom nothing is known but that they came; of these, those that have opened a
  /// WebSocket. The oldest gives way to one more.
  size_t strangers = 256, sockets = 16;
};

}  // namespace attnscope
