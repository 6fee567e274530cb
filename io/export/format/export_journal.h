#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/files/posix_file.h"

namespace attnscope {

/// One complete piece of an export: rows of a task whose chunks and row norms stand in the file.
/// The journal stores the values and gives them no meaning of its own.
struct JournalRecord {
  int64_t task = 0;
  int64_t row_begin = 0;       ///< first row, among the task's rows
  int32_t rows = 0;            ///< how many
  int32_t first_chunk = 0;     ///< first of the chunks written for these rows
  int32_t chunks = 0;          ///< how many; 0: no entries, row norms only
  uint32_t flags = 0;          ///< kJournalHasLse or nothing
  uint32_t data_checksum = 0;  ///< of the bytes written, as the caller computes it

  bool operator==(const JournalRecord&) const = default;
};

/// Flag of a JournalRecord: the LSEs of the rows are written too.
constexpr uint32_t kJournalHasLse = 1;
/// Bytes that a record takes in the file.
constexpr int64_t kJournalRecordBytes = 40;
/// Bytes that a journal's header may have.
constexpr int64_t kMaxJournalHeaderBytes = int64_t{64} << 20;

/// Where a journal's valid part ends: what is needed to append to it.
struct JournalEnd {
  uint64_t header_hash = 0;
  int64_t bytes = 0;     ///< length of the valid part, the header included
  uint64_t records = 0;  ///< records in it; the number of the next one
};

/// The content of a journal.
struct JournalContent {
  std::string header;
  std::vector<JournalRecord> records;
  JournalEnd end;
  bool torn = false;  ///< something that is no valid record follows
};

/// Reads a journal; nothing where there is no such file. Stops at the first record that is cut
/// short or whose checksum is wrong: it was being written when the run ended. Throws Error(file)
/// when it is no regular file, no journal, or its header is cut short or damaged. The checksums
/// find damage, not malice: the caller checks the header and the values of the records.
/// Memory: the header (at most 64 MiB), the records (40 bytes each) and 1 MiB.
std::optional<JournalContent> read_journal(const std::filesystem::path& path);

/// When an ExportJournal commits by itself.
struct JournalCommits {
  int64_t bytes = int64_t{64} << 20;  ///< at the latest when this much data was added; 1 to 2^60
  std::chrono::milliseconds after{5'000};  ///< and when a record has waited that long
};

/// The time by which an ExportJournal commits, and the way its threads wait. Tests bring one of
/// their own: they set its time and see who waits.
class JournalClock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  JournalClock() = default;
  JournalClock(const JournalClock&) = delete;
  JournalClock& operator=(const JournalClock&) = delete;
  virtual ~JournalClock() = default;

  /// Called with the journal's lock held, as the waits are. Thread-safe.
  virtual Time now() const { return std::chrono::steady_clock::now(); }
  /// Gives `lock` up until `woken` is notified, and takes it again; may return sooner. Thread-safe.
  virtual void wait(std::condition_variable& woken, std::unique_lock<std::mutex>& lock) {
    woken.wait(lock);
  }
  /// Waits as wait() does, but returns at the latest when now() has come to `deadline`.
  virtual void wait_until(std::condition_variable& woken, std::unique_lock<std::mutex>& lock,
                          Time deadline) {
    woken.wait_until(lock, deadline);
  }
};

/// Writes OUT.journal, which says durably which pieces of OUT.part are complete, so that a killed
/// run can be resumed. A record reaches the file only after the data that it speaks of reached the
/// disk. A thread of its own commits: it takes the records added so far, has the data synced,
/// appends the records and syncs the journal.
///
/// The file, little-endian: "ATTNJRN1"; uint64 length of the header; the header, UTF-8 JSON that
/// only the caller understands; uint64 XXH3-64 of the header; records of 40 bytes: int64 task,
/// int64 row_begin, int32 rows, int32 first_chunk, int32 chunks, uint32 flags, uint32
/// data_checksum, and uint32, the low half of the XXH3-64 of these 36 bytes, the record's number
/// from 0 (uint64) and the header's hash (uint64). So a record counts only in its own place and
/// under its own header; headers of different exports must differ.
class ExportJournal {
 public:
  /// Writes a journal with these records, or none, as PATH.tmp that then takes its name; replaces a
  /// journal that stands there. Durable on return with `sync`. Throws Error(file or resource), also
  /// where PATH is something else than a regular file; then PATH is as it was, unless it was the
  /// folder's sync that failed, and PATH.tmp is gone.
  static JournalEnd create(const std::filesystem::path& path, std::string_view header, bool sync,
                           std::span<const JournalRecord> records = {});

  /// Opens a journal to append to it; what follows `end` is cut off. `end` is what create() or
  /// read_journal() said, with nothing written since. `sync_data` makes everything durable that was
  /// written of the data before the call; the committing thread calls it once for every commit,
  /// also without `sync` (let it do nothing then). Without `sync` the journal is not synced either:
  /// it then holds after the death of the process, not after that of the machine. `clock` says when
  /// a record has waited long enough.
  /// Throws Error(file), Error(resource) where no thread can be had.
  ExportJournal(const std::filesystem::path& path, const JournalEnd& end, bool sync,
                std::function<void()> sync_data, JournalCommits commits = {},
                std::shared_ptr<JournalClock> clock = std::make_shared<JournalClock>());
  ExportJournal(const ExportJournal&) = delete;
  ExportJournal& operator=(const ExportJournal&) = delete;
  /// Finishes a commit under way, drops what was added since, joins the thread. No other call may
  /// be under way.
  ~ExportJournal();

  /// Adds the record of a piece whose data of `bytes` bytes (≥ 0) has been written, and which
  /// counts as so many tiles. Waits while more than four times the bytes of a commit are not
  /// committed. Thread-safe. Once a commit failed, this and flush() throw what it threw, and
  /// nothing is written any more.
  void add(const JournalRecord& record, int64_t bytes, int64_t tiles = 0);
  /// Commits what was added before the call and waits for it. Thread-safe.
  void flush();
  /// Tiles of what was added and is committed. Thread-safe.
  int64_t tiles_committed() const { return tiles_committed_; }

 private:
  void run() noexcept;
  bool wait_for_work(std::unique_lock<std::mutex>& lock);
  void commit(std::span<const JournalRecord> batch);

  const bool sync_;
  const JournalCommits commits_;
  const std::function<void()> sync_data_;
  const std::shared_ptr<JournalClock> clock_;
  PosixFile file_;
  JournalEnd end_;  ///< the thread's own

  std::mutex mutex_;
  std::condition_variable work_;       ///< for the thread
  std::condition_variable committed_;  ///< for those who add or flush
  std::vector<JournalRecord> pending_;
  int64_t pending_bytes_ = 0;  ///< data of pending_
  int64_t pending_tiles_ = 0;
  int64_t uncommitted_bytes_ = 0;  ///< … and of the commit under way
  JournalClock::Time deadline_;    ///< when pending_, unless empty, is due
  uint64_t records_added_ = 0;
  uint64_t records_committed_ = 0;
  std::atomic<int64_t> tiles_committed_{0};
  uint64_t records_wanted_ = 0;  ///< commit until records_committed_ is this
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  ///< last: it uses everything else
};

}  // namespace attnscope
