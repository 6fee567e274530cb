#pragma once

#include <cstddef>
#include <vector>

#include "viewer/remote/remote_tile_source.h"

namespace attnscope {

/// The conversation of a tile source with its server over one connection, whatever carries it:
/// messages that come go to the source, its own go out, and pings tell how fast the line is and
/// whether anybody is there. Times are seconds of one clock. Only on the link's thread.
class RemoteTalk {
 public:
  /// Borrows the source. `received`: bytes that the line brought until now.
  RemoteTalk(RemoteTileSource& source, double now, size_t received);

  /// A message that came. Throws Error(file) where it is nothing that a server says here.
  void take(const Message& message, double now);
  /// Something came, be it less than a message.
  void heard(double now) { heard_at_ = now; }
  /// The messages to send now. Tells the source the line's speed, from the `received` bytes so far.
  std::vector<Message> say(double now, size_t received);
  /// A ping is without an answer for so long that the connection is lost.
  bool is_silent(double now) const;

 private:
  void tell_speed(double now, size_t received);

  RemoteTileSource& source_;
  double heard_at_, pinged_at_, counted_at_;
  size_t counted_;
  double latency_ = -1;  ///< below 0: not known yet
  bool ping_under_way_ = false;
};

/// The pause before the next attempt to connect, after one of `before` seconds; 0: none was made.
double next_pause(double before);

}  // namespace attnscope
