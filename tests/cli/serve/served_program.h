#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/program.h"

namespace attnscope::test {

/// `attnscope serve`, running; of the program that has the page in tests/cli/serve/page, whether
/// or not this build has one. Killed at the end of its life.
class ServedProgram {
 public:
  /// With these words after `serve`, of the settings the environment and the files.
  explicit ServedProgram(const std::vector<std::string>& words,
                         const ProgramSettings& settings = {});
  ~ServedProgram();
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  /// Waits for the two lines that it prints; false where it ends before.
  bool wait_for_address();
  /// Of the address "http://HOST:PORT/PATH/#token=…".
  const std::string& host() const { return host_; }
  int port() const { return port_; }
  const std::string& path() const { return path_; }
  const std::string& token() const { return token_; }
  /// "ssh -N -L …"
  const std::string& ssh_line() const { return ssh_line_; }
  std::string err() const;
  void signal(int number) const;
  /// Waits for its end.
  ProgramResult end();
  /// Most that it had resident until now.
  int64_t peak_bytes() const;

 private:
  TemporaryFolder folder_;
  pid_t child_ = -1;
  int port_ = 0;
  std::string host_, path_, token_, ssh_line_;
};

}  // namespace attnscope::test
