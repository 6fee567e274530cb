#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "viewer/remote/byte_line.h"

namespace attnscope {

/// A program that was started, and the line to its standard input and output. What it writes to
/// standard error goes to this process's, in whole lines or what there is of one, its control
/// characters escaped, and its last line is kept. Not thread-safe.
/// Ends the program when it is destroyed: by the end of its input, then by signals.
class ChildLine {
 public:
  /// `words`: the program, which is looked for as a shell does, and its arguments. Throws
  /// Error(unavailable) where it cannot be started.
  explicit ChildLine(const std::vector<std::string>& words);
  ~ChildLine();
  ChildLine(const ChildLine&) = delete;
  ChildLine& operator=(const ChildLine&) = delete;

  /// ByteLine::wait(), and hands on what the program complains of.
  bool wait(double seconds, int wake = -1);
  ByteLine& line() { return *line_; }
  /// Bytes that ever came from it, complaints included.
  size_t total_received() const { return line_->total_received() + complained_; }
  /// The last line of its complaints (its standard error); may be empty.
  std::string complaint() const;
  /// With which code it ended, once its line did: waits a little for that. 128 + N after signal N;
  /// −1: it has not ended.
  int exit_code();

 private:
  void hand_on();

  pid_t child_ = -1;
  int code_ = -1;
  std::unique_ptr<ByteLine> line_;
  std::unique_ptr<ByteLine> complaints_;
  size_t complained_ = 0;
  std::string last_line_, unfinished_;
};

}  // namespace attnscope
