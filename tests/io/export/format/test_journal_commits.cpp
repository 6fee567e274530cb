#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_journal.h"
#include "tests/io/export/format/journal_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/waiting.h"

using namespace attnscope;
using namespace attnscope::test;
using namespace std::chrono_literals;

TEST_CASE("data is synced before its records are written, and only its own") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  Gate gate;
  gate.close();
  std::vector<size_t> seen;  // by sync_data
  {
    ExportJournal journal(path, end, true,
                          [&] {
                            gate.pass();
                            seen.push_back(records_in(path));
                          },
                          {.bytes = 100, .after = 1h});
    journal.add(make_record(0), 100);
    CHECK(becomes([&] { return gate.calls() == 1; }));
    // The data of this one may have been written after the sync.
    journal.add(make_record(1), 1);
    gate.open();
    CHECK(becomes([&] { return records_in(path) == 1; }));
    journal.flush();
    CHECK(read_journal(path)->records == make_records(0, 2));
    journal.flush();  // nothing left to do
  }
  CHECK(seen == std::vector<size_t>{0, 1});
  CHECK(gate.calls() == 2);
}

TEST_CASE("flush waits for the records before it, not for more commits than needed") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  Gate gate;
  const auto clock = std::make_shared<ManualClock>();
  ExportJournal journal(
      path, end, false, [&] { gate.pass(); }, kOnFlush, clock);
  journal.flush();
  CHECK(gate.calls() == 0);
  gate.close();
  journal.add(make_record(0), 1);
  std::future<void> first = std::async(std::launch::async, [&] { journal.flush(); });
  CHECK(becomes([&] { return gate.calls() == 1 && clock->waiting() == 1; }));
  std::future<void> second = std::async(std::launch::async, [&] { journal.flush(); });
  CHECK(becomes([&] { return clock->waiting() == 2; }));
  gate.open();
  first.get();
  second.get();
  CHECK(gate.calls() == 1);
  CHECK(records_in(path) == 1);
}

TEST_CASE("a commit comes when enough was added") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  Gate gate;
  const auto clock = std::make_shared<ManualClock>();
  {
    ExportJournal journal(
        path, end, false, [&] { gate.pass(); }, {.bytes = 100, .after = 1h}, clock);
    journal.add(make_record(0), 60);
    REQUIRE(becomes([&] { return clock->looks() >= 1; }));
    journal.add(make_record(1), 39);
    clock->advance(0ms);
    CHECK(becomes([&] { return clock->looks() >= 2; }));
    CHECK(gate.calls() == 0);
    journal.add(make_record(2), 1);
    CHECK(becomes([&] { return records_in(path) == 3; }));
    // The next one counts from the last.
    journal.add(make_record(3), 99);
    CHECK(becomes([&] { return clock->looks() >= 3; }));
    CHECK(gate.calls() == 1);
  }
  // Records that were not committed are dropped.
  CHECK(read_journal(path)->records == make_records(0, 3));
  CHECK(gate.calls() == 1);
}

TEST_CASE("a commit comes when a record has waited long enough") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  Gate gate;
  const auto clock = std::make_shared<ManualClock>();
  ExportJournal journal(
      path, end, false, [&] { gate.pass(); }, {.bytes = int64_t{1} << 40, .after = 100ms}, clock);
  journal.add(make_record(0), 1);
  REQUIRE(becomes([&] { return clock->looks() >= 1; }));
  clock->advance(60ms);
  CHECK(becomes([&] { return clock->looks() >= 2; }));
  // The first record's time counts, not that of the last.
  journal.add(make_record(1), 1);
  clock->advance(39ms);
  CHECK(becomes([&] { return clock->looks() >= 3; }));
  CHECK(gate.calls() == 0);
  clock->advance(1ms);
  CHECK(becomes([&] { return records_in(path) == 2; }));
  // The time without a record does not count.
  clock->advance(1h);
  journal.add(make_record(2), 1);
  CHECK(becomes([&] { return clock->looks() >= 4; }));
  CHECK(gate.calls() == 1);
  clock->advance(100ms);
  CHECK(becomes([&] { return records_in(path) == 3; }));
  CHECK(gate.calls() == 2);
}

TEST_CASE("a journal that is given no clock commits by the machine's") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  ExportJournal journal(path, end, false, [] {}, {.bytes = int64_t{1} << 40, .after = 30ms});
  const auto begin = std::chrono::steady_clock::now();
  journal.add(make_record(0), 1);
  CHECK(becomes([&] { return records_in(path) == 1; }));
  CHECK(std::chrono::steady_clock::now() - begin >= 30ms);
}

TEST_CASE("who adds faster than the disk writes waits") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  Gate gate;
  gate.close();
  const auto clock = std::make_shared<ManualClock>();
  ExportJournal journal(
      path, end, false, [&] { gate.pass(); }, {.bytes = 10, .after = 1h}, clock);
  journal.add(make_record(0), 40);  // exactly four commits
  CHECK(becomes([&] { return gate.calls() == 1 && clock->waiting() == 0; }));
  journal.add(make_record(1), 1);
  std::future<void> more = std::async(std::launch::async, [&] { journal.add(make_record(2), 1); });
  CHECK(becomes([&] { return clock->waiting() == 1; }));
  gate.open();
  more.get();
  journal.flush();
  CHECK(read_journal(path)->records == make_records(0, 3));
}

TEST_CASE("a failed sync ends the journal, and everybody learns why") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  Gate gate;
  const auto clock = std::make_shared<ManualClock>();
  {
    ExportJournal journal(
        path, end, false,
        [&] {
          gate.pass();
          if (gate.calls() == 2) throw Error(ErrorCode::file, "out.part: fdatasync failed");
        },
        {.bytes = 10, .after = 1h}, clock);
    journal.add(make_record(0), 1);
    journal.flush();
    gate.close();
    journal.add(make_record(1), 40);
    CHECK(becomes([&] { return gate.calls() == 2; }));
    journal.add(make_record(2), 10);  // due, but its turn never comes
    // Those who wait learn it as well.
    auto adding = std::async(std::launch::async, [&] {
      return thrown_by([&] { journal.add(make_record(3), 1); }).text;
    });
    auto flushing =
        std::async(std::launch::async, [&] { return thrown_by([&] { journal.flush(); }).text; });
    CHECK(becomes([&] { return clock->waiting() == 2; }));
    gate.open();
    CHECK(adding.get() == "out.part: fdatasync failed");
    CHECK(flushing.get() == "out.part: fdatasync failed");
    for (int i = 0; i < 2; ++i) {
      CHECK(thrown_by([&] { journal.flush(); }).says("out.part: fdatasync failed"));
      CHECK(thrown_by([&] { journal.add(make_record(4), 100); }).says("fdatasync failed"));
    }
  }
  CHECK(gate.calls() == 2);
  const auto content = read_journal(path);
  CHECK(content->records == make_records(0, 1));
  CHECK_FALSE(content->torn);
}

TEST_CASE("exceptions that are no Error come out as they are") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  ExportJournal journal(
      path, end, false, [] { throw std::logic_error("defect"); }, kOnFlush);
  journal.add(make_record(0), 1);
  CHECK_THROWS_AS(journal.flush(), std::logic_error);
  CHECK_THROWS_AS(journal.add(make_record(1), 1), std::logic_error);
  CHECK(records_in(path) == 0);
}

TEST_CASE("a journal that cannot grow keeps what it has") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 2);
  const JournalEnd end = read_journal(path)->end;
  {
    ExportJournal journal(
        path, end, false, [] {}, kOnFlush);
    for (int64_t i = 2; i < 6; ++i) journal.add(make_record(i), 1);
    Thrown thrown;
    {
      const FileSizeLimit limit(static_cast<rlim_t>(end.bytes) + 60);
      thrown = thrown_by([&] { journal.flush(); });
    }
    CHECK(thrown.code == ErrorCode::resource);
    CHECK(thrown.says(path + ": write at offset "));
    // There is room again, but nothing is tried again.
    CHECK(thrown_by([&] { journal.flush(); }).text == thrown.text);
    CHECK(thrown_by([&] { journal.add(make_record(6), 1); }).text == thrown.text);
  }
  const auto content = read_journal(path);
  CHECK(content->records == make_records(0, 3));
  CHECK(content->torn);
  append(path, content->end, make_records(3, 8));
  CHECK(read_journal(path)->records == make_records(0, 8));
}

TEST_CASE("many threads add at once, and nothing is lost or doubled") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  constexpr int64_t kThreads = 8;
  constexpr int64_t kEach = 400;
  const JournalEnd end = ExportJournal::create(path, kHeader, false);
  {
    ExportJournal journal(path, end, false, [] {}, {.bytes = 1000, .after = 1ms});
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&journal, t] {
        for (int64_t i = 0; i < kEach; ++i) {
          journal.add(make_record(t * kEach + i), 1 + i % 300);
          if (i % 100 == t) journal.flush();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    journal.flush();
  }
  auto content = read_journal(path);
  CHECK_FALSE(content->torn);
  std::sort(content->records.begin(), content->records.end(),
            [](const auto& a, const auto& b) { return a.row_begin < b.row_begin; });
  CHECK(content->records == make_records(0, kThreads * kEach));
}

TEST_CASE("a killed run leaves what it flushed") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const JournalEnd end = ExportJournal::create(path, kHeader, true);
    ExportJournal journal(
        path, end, true, [] {}, kOnFlush);
    for (int64_t i = 0; i < 3; ++i) journal.add(make_record(i), 1);
    journal.flush();
    journal.add(make_record(3), 1);
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto content = read_journal(path);
  REQUIRE(content);
  CHECK(content->records == make_records(0, 3));
  CHECK_FALSE(content->torn);
}
