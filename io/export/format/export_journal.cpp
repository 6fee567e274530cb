#include "io/export/format/export_journal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "io/files/checksum.h"
#include "io/files/input_file.h"
#include "io/files/leftovers.h"

namespace attnscope {
namespace {

using std::filesystem::path;

constexpr int64_t kPrefixBytes = 16;  // magic and length
constexpr int64_t kHashBytes = 8;
/// Of a record, all but its checksum.
constexpr size_t kFieldBytes = 36;
/// Records are read in pieces of this many: about 1 MiB.
constexpr int64_t kRecordsPerRead = (int64_t{1} << 20) / kJournalRecordBytes;
/// add() waits while more than this many commits' bytes are not committed.
constexpr int64_t kCommitsAhead = 4;
[[maybe_unused]] constexpr int64_t kMaxCommitBytes = int64_t{1} << 60;

// A record's fields stand in the file as they stand in memory.
static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<JournalRecord>);
static_assert(sizeof(JournalRecord) >= kFieldBytes);
static_assert(offsetof(JournalRecord, task) == 0);
static_assert(offsetof(JournalRecord, row_begin) == 8);
static_assert(offsetof(JournalRecord, rows) == 16);
static_assert(offsetof(JournalRecord, first_chunk) == 20);
static_assert(offsetof(JournalRecord, chunks) == 24);
static_assert(offsetof(JournalRecord, flags) == 28);
static_assert(offsetof(JournalRecord, data_checksum) == 32);
static_assert(kFieldBytes + sizeof(uint32_t) == kJournalRecordBytes);

uint32_t journal_checksum(const std::byte* fields, uint64_t number, uint64_t header_hash) {
  std::array<std::byte, kFieldBytes + 16> salted;
  std::memcpy(salted.data(), fields, kFieldBytes);
  std::memcpy(salted.data() + kFieldBytes, &number, sizeof number);
  std::memcpy(salted.data() + kFieldBytes + 8, &header_hash, sizeof header_hash);
  return checksum(salted);
}

/// Bytes of a journal with a header of `length` bytes and no records.
constexpr int64_t empty_bytes(int64_t length) { return kPrefixBytes + length + kHashBytes; }

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::span<const std::byte> bytes_of(const uint64_t& number) {
  return std::as_bytes(std::span(&number, 1));
}

Error too_long(const path& file, uint64_t length) {
  return file_error(file.string(), "header",
                    "is too long (got " + std::to_string(length) + " bytes, limit " +
                        std::to_string(kMaxJournalHeaderBytes) + ")");
}

Error cut_short(const InputFile& file, int64_t needed) {
  return file_error(file.path().string(), "header",
                    "the file ends before its end (got " + std::to_string(file.size()) +
                        " bytes, needed " + std::to_string(needed) + ")");
}

void read_header(const InputFile& file, JournalContent& content) {
  const int64_t size = file.size();
  const std::string name = file.path().string();
  std::array<char, kPrefixBytes> prefix{};
  const auto available = static_cast<size_t>(std::min(size, kPrefixBytes));
  file.read_at(0, std::as_writable_bytes(std::span(prefix).first(available)));
  if (!std::string_view(prefix.data(), prefix.size()).starts_with(kJournalMagic)) {
    throw file_error(name, "byte 0", "is no export journal");
  }
  if (size < kPrefixBytes) throw cut_short(file, empty_bytes(0));
  uint64_t length = 0;
  std::memcpy(&length, prefix.data() + kJournalMagic.size(), sizeof length);
  if (length > static_cast<uint64_t>(kMaxJournalHeaderBytes)) throw too_long(file.path(), length);
  content.end.bytes = empty_bytes(static_cast<int64_t>(length));
  // Before memory of that length is taken.
  if (size < content.end.bytes) throw cut_short(file, content.end.bytes);
  content.header.resize(length);
  file.read_at(kPrefixBytes, std::as_writable_bytes(std::span(content.header)));
  uint64_t stored = 0;
  file.read_at(content.end.bytes - kHashBytes, std::as_writable_bytes(std::span(&stored, 1)));
  content.end.header_hash = checksum64(bytes_of(content.header));
  if (stored != content.end.header_hash) {
    throw file_error(name, "header", "is damaged: its checksum is wrong");
  }
}

/// Appends the valid records of `bytes` to `content`; false where one is not valid.
bool take_records(std::span<const std::byte> bytes, JournalContent& content) {
  for (size_t at = 0; at < bytes.size(); at += kJournalRecordBytes) {
    const std::byte* fields = bytes.data() + at;
    uint32_t stored = 0;
    std::memcpy(&stored, fields + kFieldBytes, sizeof stored);
    if (stored != journal_checksum(fields, content.end.records, content.end.header_hash)) {
      return false;
    }
    JournalRecord record;
    std::memcpy(static_cast<void*>(&record), fields, kFieldBytes);
    content.records.push_back(record);
    ++content.end.records;
    content.end.bytes += kJournalRecordBytes;
  }
  return true;
}

/// Appends records to a journal that ends as `end` says, which then says where it ends.
void append_records(const PosixFile& file, std::span<const JournalRecord> records,
                    JournalEnd& end) {
  std::vector<std::byte> bytes(records.size() * kJournalRecordBytes);
  uint64_t number = end.records;
  std::byte* at = bytes.data();
  for (const JournalRecord& record : records) {
    std::memcpy(at, &record, kFieldBytes);
    const uint32_t sum = journal_checksum(at, number++, end.header_hash);
    std::memcpy(at + kFieldBytes, &sum, sizeof sum);
    at += kJournalRecordBytes;
  }
  file.write_at(bytes, end.bytes);
  end.bytes += static_cast<int64_t>(bytes.size());
  end.records = number;
}

JournalEnd write_new(const path& file, std::string_view header, bool sync,
                     std::span<const JournalRecord> records) {
  const uint64_t hash = checksum64(bytes_of(header));
  JournalEnd end{hash, empty_bytes(static_cast<int64_t>(header.size())), 0};
  PosixFile out(file, PosixFile::Mode::create);
  const uint64_t length = header.size();
  out.write_at(bytes_of(kJournalMagic), 0);
  out.write_at(bytes_of(length), static_cast<int64_t>(kJournalMagic.size()));
  out.write_at(bytes_of(header), kPrefixBytes);
  out.write_at(bytes_of(hash), kPrefixBytes + static_cast<int64_t>(length));
  append_records(out, records, end);
  if (sync) out.sync();
  out.close();
  return end;
}

}  // namespace

std::optional<JournalContent> read_journal(const path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return std::nullopt;
  const InputFile file(path);
  JournalContent content;
  read_header(file, content);
  std::vector<std::byte> piece;
  bool valid = true;
  int64_t whole = (file.size() - content.end.bytes) / kJournalRecordBytes;
  while (valid && whole > 0) {
    const int64_t count = std::min(whole, kRecordsPerRead);
    piece.resize(static_cast<size_t>(count * kJournalRecordBytes));
    file.read_at(content.end.bytes, piece);
    valid = take_records(piece, content);
    whole -= count;
  }
  content.torn = content.end.bytes != file.size();
  return content;
}

JournalEnd ExportJournal::create(const path& path, std::string_view header, bool sync,
                                 std::span<const JournalRecord> records) {
  if (header.size() > static_cast<size_t>(kMaxJournalHeaderBytes)) {
    throw too_long(path, header.size());
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw file_error(path.string(), "", "is no regular file");
  }
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) {
    throw errno_error(temporary, "cannot be removed", errno);
  }
  JournalEnd end;
  try {
    end = write_new(temporary, header, sync, records);
    rename_file(temporary, path, true);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (sync) sync_folder_of(path);
  return end;
}

ExportJournal::ExportJournal(const path& path, const JournalEnd& end, bool sync,
                             std::function<void()> sync_data, JournalCommits commits,
                             std::shared_ptr<JournalClock> clock)
    : sync_(sync),
      commits_(commits),
      sync_data_(std::move(sync_data)),
      clock_(std::move(clock)),
      file_(path, PosixFile::Mode::existing),
      end_(end) {
  assert(commits.bytes > 0 && commits.bytes <= kMaxCommitBytes);
  const int64_t size = file_.size();
  if (size < end.bytes) {
    throw file_error(path.string(), "",
                     "was cut short since it was read (got " + std::to_string(size) +
                         " bytes, needed " + std::to_string(end.bytes) + ")");
  }
  if (size > end.bytes) {
    file_.truncate(end.bytes);
    // A tail that came back after a power loss could stand behind records written meanwhile.
    if (sync_) file_.sync();
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& failed) {
    throw Error(ErrorCode::resource,
                path.string() + ": no thread to write it: " + failed.code().message());
  }
}

ExportJournal::~ExportJournal() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void ExportJournal::add(const JournalRecord& record, int64_t bytes, int64_t tiles) {
  assert(bytes >= 0);
  std::unique_lock lock(mutex_);
  while (!failure_ && uncommitted_bytes_ > kCommitsAhead * commits_.bytes) {
    clock_->wait(committed_, lock);
  }
  if (failure_) std::rethrow_exception(failure_);
  if (pending_.empty()) deadline_ = clock_->now() + commits_.after;
  pending_.push_back(record);
  pending_bytes_ += bytes;
  pending_tiles_ += tiles;
  uncommitted_bytes_ += bytes;
  ++records_added_;
  const bool due = pending_bytes_ >= commits_.bytes;
  const bool first = pending_.size() == 1;
  lock.unlock();
  if (due || first) work_.notify_one();
}

void ExportJournal::flush() {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = records_added_;
  records_wanted_ = wanted;
  work_.notify_one();
  while (!failure_ && records_committed_ < wanted) clock_->wait(committed_, lock);
  if (failure_) std::rethrow_exception(failure_);
}

/// Waits until pending_ is to be committed; false when the thread is to end instead.
bool ExportJournal::wait_for_work(std::unique_lock<std::mutex>& lock) {
  while (!stopping_) {
    if (pending_.empty()) {
      clock_->wait(work_, lock);
      continue;
    }
    const bool due = pending_bytes_ >= commits_.bytes || records_committed_ < records_wanted_ ||
                     clock_->now() >= deadline_;
    if (due) return true;
    clock_->wait_until(work_, lock, deadline_);
  }
  return false;
}

void ExportJournal::run() noexcept {
  std::unique_lock lock(mutex_);
  while (wait_for_work(lock)) {
    const std::vector<JournalRecord> batch = std::exchange(pending_, {});
    const int64_t bytes = std::exchange(pending_bytes_, 0);
    const int64_t tiles = std::exchange(pending_tiles_, 0);
    lock.unlock();
    std::exception_ptr failure;
    try {
      commit(batch);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (!failure) {
      records_committed_ += batch.size();
      tiles_committed_ += tiles;
      uncommitted_bytes_ -= bytes;
    }
    failure_ = std::move(failure);
    committed_.notify_all();
    // After a failed sync nobody knows what is on the disk: trying again could claim too much.
    if (failure_) return;
  }
}

void ExportJournal::commit(std::span<const JournalRecord> batch) {
  sync_data_();
  JournalEnd end = end_;
  append_records(file_, batch, end);
  if (sync_) file_.sync_data();
  end_ = end;
}

}  // namespace attnscope
