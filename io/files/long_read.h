#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace attnscope {

// A tensor may be served only after its whole member of an archive was read and its checksum
// compared, which takes as long as the member is large. Whoever asks for a value knows nothing of
// that, so that a stop and those who want to be told reach it past all calls between.

/// While it lives, checks of whole members end with Error(interrupted) soon after a stop of `stop`
/// is requested, in whatever thread they run. One at a time in a process.
class LongReadStop {
 public:
  explicit LongReadStop(std::stop_token stop);
  ~LongReadStop();
  LongReadStop(const LongReadStop&) = delete;
  LongReadStop& operator=(const LongReadStop&) = delete;

 private:
  std::stop_callback<void (*)()> callback_;
};

/// Is told how far one long read is, from one thread at a time.
class LongReadProgress {
 public:
  virtual ~LongReadProgress() = default;
  virtual void update(int64_t bytes_done) = 0;
};
using LongReadReporter =
    std::function<std::unique_ptr<LongReadProgress>(const std::string& what, int64_t bytes)>;
/// Who is told of long reads from now on; nobody where `reporter` is empty. It may be called from
/// any thread. To be set while nothing is read.
void set_long_read_reporter(LongReadReporter reporter);

/// Throws Error(interrupted) where a stop was requested.
void check_long_read_stop(const std::string& what);

/// One pass over `bytes` of "FILE: member NAME".
class LongRead {
 public:
  LongRead(const std::string& what, int64_t bytes);
  /// Throws as check_long_read_stop.
  void update(int64_t bytes_done);

 private:
  const std::string what_;
  std::unique_ptr<LongReadProgress> progress_;
};

}  // namespace attnscope
