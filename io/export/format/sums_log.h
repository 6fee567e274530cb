#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "io/files/posix_file.h"

namespace attnscope {

/// Small pieces of an export (checksums, LSEs) that a process leaves to another one to put into the
/// file: pages of the file that several hosts would write to belong to one of them alone. Pieces
/// are in the file of the log when sync() returns. Thread-safe.
///
/// The file, little-endian: "ATTNSUM1"; of each piece int64 place in the export, int64 bytes, these
/// bytes, uint32 checksum of all that.
class SumsLog {
 public:
  /// Creates the file, which must not exist. `sync`: sync() makes it durable. Throws Error(file).
  SumsLog(const std::filesystem::path& path, bool sync);

  void add(std::span<const std::byte> bytes, int64_t place);
  /// Writes what was added before the call. Throws Error(file or resource).
  void sync();
  /// How many pieces were added.
  int64_t pieces() const { return pieces_; }

 private:
  const bool sync_;
  PosixFile file_;
  std::mutex mutex_;
  std::vector<std::byte> pending_;
  int64_t end_ = 0;
  int64_t pieces_ = 0;
};

/// Gives the pieces of a log to `put`, with their places in an export of `room` bytes; of those
/// that are cut short or damaged none, nor what follows them: they were being written when the
/// process ended, and nothing says that what they are of is there. Returns how many there were. No
/// file is an empty log. Throws Error(file) where it is no log, or has places beyond the file's
/// end.
int64_t read_sums(const std::filesystem::path& log, int64_t room,
                  const std::function<void(std::span<const std::byte> bytes, int64_t place)>& put);
/// Writes the pieces of a log to their places in `file`; else as read_sums().
int64_t replay_sums(const std::filesystem::path& log, const PosixFile& file);

/// How many pieces each process has in its log, by rank, as it says itself; 0 of rank 0.
struct PromisedSums {
  std::vector<int64_t> pieces;
  /// Other hosts may see what was written only after a while.
  std::chrono::milliseconds patience{60'000};
};
/// Puts the pieces of all processes that write to OUT to their places in `file`. Throws Error(file)
/// where those of one are not all to be seen in time.
void replay_promised_sums(const std::filesystem::path& out, const PromisedSums& promised,
                          const PosixFile& file);

}  // namespace attnscope
