#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "io/files/input_folder.h"

namespace attnscope {

class InputSet;

// A tensor may be served only after its whole member of an archive was read and its checksum
// compared, which takes as long as the member is large. Whoever asks for a value knows nothing of
// that. So who opens a file says once how its long reads are stopped and who is told of them, and
// what reads keeps it.

/// Is told how far one long read is, from one thread at a time.
class ReadProgress {
 public:
  virtual ~ReadProgress() = default;
  virtual void update(int64_t bytes_done) = 0;
};

/// Is asked for one as a read of `bytes` of "FILE: member NAME" begins; may be called from several
/// threads at once.
using ReadReporter =
    std::function<std::unique_ptr<ReadProgress>(const std::string& what, int64_t bytes)>;

/// Options that whoever opens files hands to everything that reads for long in them. A value:
/// whatever was opened keeps a copy for as long as it is read.
struct ReadControl {
  std::stop_token stop{};  ///< long reads throw Error(interrupted) soon after a stop is requested
  ReadReporter reporter = {};   ///< told of reads of 64 MiB and more; nobody where it is empty
  Links links = Links::refuse;  ///< whether tensors in a capture's folder may be links
  int64_t memory = int64_t{1} << 30;  ///< bytes that the head of one file may take while it is read
  /// True where a recorder may still add to the capture: its capture.json is what it was when it
  /// was read, whatever has replaced it since.
  bool growing = false;
  /// The set that tensor files are opened in; null: each stands alone, and its name may be a link.
  std::shared_ptr<InputSet> files = nullptr;
};

/// Throws Error(interrupted) where a stop was requested; `what` is being read.
void check_read_stop(const ReadControl& control, const std::string& what);

/// One pass over `bytes` of "FILE: member NAME". Not thread-safe.
class LongRead {
 public:
  /// Borrows `control`.
  LongRead(const ReadControl& control, std::string what, int64_t bytes);
  /// Throws as check_read_stop.
  void update(int64_t bytes_done);

 private:
  const ReadControl& control_;
  const std::string what_;
  std::unique_ptr<ReadProgress> progress_;
};

}  // namespace attnscope
