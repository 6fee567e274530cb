#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "viewer/script/script.h"
#include "viewer/script/script_host.h"
#include "viewer/view/view_state.h"

namespace attnscope {

struct MapSource;
/// Runs a script a few commands a frame. Has no clock. Not thread-safe.
class ScriptRunner {
 public:
  enum class State : uint8_t { running, finished, failed };

  /// Borrows the host.
  ScriptRunner(Script script, ScriptHost& host);

  /// Once a frame, after it was drawn, with the time of a steady clock: goes on until a command
  /// needs another frame. Never throws an Error.
  State step(double seconds);
  State state() const { return state_; }
  /// "FILE:LINE: expect frames < 5: got 7"; empty unless it failed.
  const std::string& error() const { return error_; }
  /// True where `quit` ended the script, not its last line.
  bool quit() const { return quit_; }
  /// 0, or 1 where it failed.
  int exit_code() const { return state_ == State::failed ? 1 : 0; }
  /// Frames within which a label that is to be clicked has to appear.
  static constexpr int kLabelFrames = 10;

 private:
  struct Step;

  Script script_;
  ScriptHost& host_;
  size_t next_ = 0;
  State state_ = State::running;
  std::string error_;
  bool quit_ = false;
  bool started_ = false;  ///< the command at next_ asked for another frame
  bool begun_ = false;    ///< what it asks the host for is under way
  double since_ = 0;      ///< when it was first asked
  int frames_ = 0;        ///< how often it was asked again
};

}  // namespace attnscope
