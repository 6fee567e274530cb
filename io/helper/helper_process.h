#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/helper/helper_message.h"

namespace attnscope {

/// How far a helper may go before its answer is given up.
struct HelperPatience {
  std::chrono::nanoseconds processor_time;  ///< that it computes
  std::chrono::nanoseconds standstill;      ///< in which it does not even compute
};

/// How waiting for a helper's message ended.
struct HelperReply {
  enum class Kind {
    message,     ///< it sent one, which has no strings where it is none
    ended,       ///< it is gone
    looping,     ///< it computed for longer than it may
    standstill,  ///< it was given no processor, or waits for a disk, for longer than it may
    stopped,     ///< a stop was requested
  };
  Kind kind = Kind::ended;
  HelperMessage message = {};
  std::chrono::nanoseconds processor_time{};  ///< that the helper has taken for it
};

/// A helper process and the socket to it. It is started from a clean slate whatever the threads of
/// this process hold: the program runs anew, with no file but the socket as its standard input (its
/// outputs go nowhere), no signal ignored and none blocked but SIGHUP, SIGINT and SIGTERM, in a
/// process group of its own, so that those, and Ctrl-C at the terminal, are its parent's business.
/// One thread at a time.
class HelperProcess {
 public:
  /// Throws Error(resource) where the system starts no process, Error(unavailable) where the
  /// program cannot be run; the messages begin with `purpose`.
  HelperProcess(const std::string& program, const std::vector<std::string>& arguments,
                const std::string& purpose);
  /// Ends the process.
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  /// Waits for what it says first, which is helper_greeting() where it is a helper.
  HelperReply await_greeting(const HelperPatience& patience, const std::stop_token& stop);

  /// Sends a question and waits for the answer. Time in which this process was stopped itself is
  /// nobody's.
  HelperReply ask(const HelperMessage& question, const HelperPatience& patience,
                  const std::stop_token& stop);

  /// Messages got after the greeting.
  int answers() const { return answers_; }

  /// Ends the process, where it has not ended, and says how it did, as waitpid does; nothing where
  /// somebody else took notice of its end.
  std::optional<int> end();

  /// Forgets the process, which belongs to the one that this was forked from.
  void abandon();

 private:
  HelperReply exchange(std::string question, const HelperPatience& patience,
                       const std::stop_token& stop);
  std::chrono::nanoseconds processor_time() const;

  int socket_ = -1;
  int process_ = -1;
  int answers_ = 0;
};

}  // namespace attnscope
