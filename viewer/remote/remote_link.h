#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "viewer/remote/child_line.h"
#include "viewer/remote/remote_tile_source.h"

namespace attnscope {

/// How a server is reached, and what is to be said where it is not.
struct RemoteProgram {
  std::string name;  ///< of the place, for messages: "ssh://host/dump"
  /// The program that leads to the server and its arguments; `again`: nobody is there to be asked
  /// for a password.
  std::function<std::vector<std::string>(bool again)> words;
  /// The meaning of an exit code of that program before any greeting; empty: nothing is known.
  std::function<std::string(int code)> meaning;
  /// Without a byte before it says what it has: no longer is waited for it.
  double silent_seconds = 120;
};

/// The line to a server: opens it, and brings messages from and to a RemoteTileSource on a thread
/// of its own. A line that is lost is opened again, after 1, 2, 4 … 30 seconds.
class RemoteLink {
 public:
  /// Opens the line and waits for what there is. Throws Error(unavailable) where it does not come,
  /// with what the program that leads there said last, where it is silent for too long, where the
  /// other side speaks another protocol; Error(file) where it does not keep to it;
  /// Error(interrupted) soon after a stop.
  RemoteLink(RemoteProgram program, const std::stop_token& stop);
  /// Ends the line.
  ~RemoteLink();

  const RemoteHello& hello() const { return hello_; }
  /// From now on messages go to and come from this source, which is borrowed. Once.
  void serve(RemoteTileSource& source);

 private:
  RemoteHello open(bool again, const std::stop_token& stop);
  void run(const std::stop_token& stop);
  std::string talk(const std::stop_token& stop);
  [[noreturn]] void fail_before_greeting();

  const RemoteProgram program_;
  EventBell bell_;
  std::unique_ptr<ChildLine> child_;
  RemoteHello hello_;  ///< after those that bring it
  RemoteTileSource* source_ = nullptr;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace attnscope
