#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_journal.h"

namespace attnscope::test {

inline const std::string kHeader = R"({"spec":"a map","id":7})";
/// Nothing is committed before flush().
constexpr JournalCommits kOnFlush{.bytes = int64_t{1} << 60, .after = std::chrono::hours(1)};

inline JournalRecord make_record(int64_t number) {
  const auto n = static_cast<int32_t>(number);
  return {.task = number / 7,
          .row_begin = (int64_t{1} << 40) + number * 64,
          .rows = 64,
          .first_chunk = n * 3,
          .chunks = n % 4,
          .flags = n % 2 == 0 ? kJournalHasLse : 0,
          .data_checksum = 0x9e3779b9u * static_cast<uint32_t>(n)};
}

inline std::vector<JournalRecord> make_records(int64_t begin, int64_t end) {
  std::vector<JournalRecord> records;
  for (int64_t i = begin; i < end; ++i) records.push_back(make_record(i));
  return records;
}

inline void append(const std::string& path, const JournalEnd& end,
                   const std::vector<JournalRecord>& records, bool sync = false) {
  ExportJournal journal(
      path, end, sync, [] {}, kOnFlush);
  for (const JournalRecord& record : records) journal.add(record, 1);
  journal.flush();
}

/// A journal with records 0 to `count` − 1.
inline void write_journal(const std::string& path, int64_t count,
                          const std::string& header = kHeader) {
  append(path, ExportJournal::create(path, header, false), make_records(0, count));
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline size_t records_in(const std::string& path) { return read_journal(path)->records.size(); }

struct Thrown {
  bool any = false;
  ErrorCode code = ErrorCode::interrupted;
  std::string text;
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};
template <typename F>
Thrown thrown_by(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return {true, error.code(), error.what()};
  }
  return {};
}

/// A sync_data that says how often it was called and can be made to wait.
class Gate {
 public:
  void pass() {
    ++calls_;
    open_.wait(false);
  }
  void close() { open_ = false; }
  void open() {
    open_ = true;
    open_.notify_all();
  }
  int calls() const { return calls_; }

 private:
  std::atomic<int> calls_{0};
  std::atomic<bool> open_{true};
};

/// A clock that stands still until it is moved, and that tells who waits.
class ManualClock : public JournalClock {
 public:
  Time now() const override { return now_; }
  void wait(std::condition_variable& woken, std::unique_lock<std::mutex>& lock) override {
    ++waiting_;
    woken.wait(lock);
    --waiting_;
  }
  void wait_until(std::condition_variable& woken, std::unique_lock<std::mutex>& lock,
                  Time) override {
    committer_ = &woken;
    mutex_ = lock.mutex();
    ++looks_;
    wait(woken, lock);
  }

  /// Threads that wait now.
  int waiting() const { return waiting_; }
  /// How often the committing thread found records that were not due.
  int looks() const { return looks_; }
  /// Moves the time, by nothing perhaps, and has the committing thread look again; it must have
  /// looked before.
  void advance(std::chrono::milliseconds by) {
    // The committing thread decides under this lock: it sees the old time and is woken, or the new.
    const std::lock_guard lock(*mutex_.load());
    now_ = now_.load() + by;
    committer_.load()->notify_one();
  }

 private:
  std::atomic<Time> now_{Time{}};
  std::atomic<int> waiting_{0}, looks_{0};
  std::atomic<std::mutex*> mutex_{nullptr};
  std::atomic<std::condition_variable*> committer_{nullptr};
};

}  // namespace attnscope::test
