#include <sys/stat.h>

#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_journal.h"
#include "io/files/checksum.h"
#include "tests/io/export/format/journal_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("a journal gives back what was written") {
  const TemporaryFolder folder;
  const std::string path = folder / "out.h5.journal";
  const bool sync = GENERATE(false, true);
  const std::string header = GENERATE(std::string(), kHeader, std::string(100'000, 'x'));
  const JournalEnd created = ExportJournal::create(path, header, sync);
  const auto empty = read_journal(path);
  REQUIRE(empty);
  CHECK(empty->header == header);
  CHECK(empty->records.empty());
  CHECK_FALSE(empty->torn);
  CHECK(empty->end.bytes == static_cast<int64_t>(24 + header.size()));
  CHECK(empty->end.bytes == created.bytes);
  CHECK(empty->end.header_hash == created.header_hash);
  append(path, created, make_records(0, 5), sync);
  append(path, read_journal(path)->end, make_records(5, 9), sync);
  const auto content = read_journal(path);
  REQUIRE(content);
  CHECK(content->header == header);
  CHECK(content->records == make_records(0, 9));
  CHECK(content->end.records == 9);
  CHECK(content->end.bytes == created.bytes + 9 * 40);
  CHECK_FALSE(content->torn);
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_CASE("a journal's bytes are what the format says") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const JournalEnd end = ExportJournal::create(path, "", false);
  append(path, end, {{1, 2, 3, 4, 5, 1, 0x01020304}});
  const std::string bytes = read_bytes(path);
  REQUIRE(bytes.size() == 64);
  CHECK(bytes.substr(0, 16) == std::string("ATTNJRN1\0\0\0\0\0\0\0\0", 16));
  // XXH3-64 of nothing with seed 0, as its specification has it.
  CHECK(bytes.substr(16, 8) == "\xc2\x94\xd3\x38\x05\x80\x06\x2d");
  CHECK(bytes.substr(24, 36) == std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\4\0\0\0"
                                            "\5\0\0\0\1\0\0\0\4\3\2\1",
                                            36));
  // Its checksum covers the record, its number 0 and the header's hash.
  const std::string salted = bytes.substr(24, 36) + std::string(8, '\0') + bytes.substr(16, 8);
  const uint32_t sum = checksum(std::as_bytes(std::span(salted)));
  CHECK(bytes.substr(60) == std::string(reinterpret_cast<const char*>(&sum), sizeof sum));
}

TEST_CASE("journals longer than one read are read whole") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  // A piece takes 26 214 records; 52 428 end with one.
  const int64_t count = GENERATE(26'213, 26'214, 26'215, 52'428, 60'000);
  write_journal(path, count);
  CHECK(read_journal(path)->records == make_records(0, count));
}

TEST_CASE("a missing journal is nothing") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_journal(folder / "journal").has_value());
  CHECK_FALSE(read_journal(folder / "no/journal").has_value());
}

TEST_CASE("a torn tail of any length is cut off, and appending goes on") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 4);
  const std::string whole = read_bytes(path);
  const bool sync = GENERATE(false, true);
  for (size_t lost = 1; lost <= 40; ++lost) {
    INFO(lost);
    write_bytes(path, whole.substr(0, whole.size() - lost));
    const auto torn = read_journal(path);
    REQUIRE(torn);
    CHECK(torn->records == make_records(0, 3));
    CHECK(torn->torn == (lost < 40));
    CHECK(torn->end.bytes == static_cast<int64_t>(whole.size()) - 40);
    append(path, torn->end, make_records(3, 6), sync);
    const auto resumed = read_journal(path);
    REQUIRE(resumed);
    CHECK(resumed->records == make_records(0, 6));
    CHECK_FALSE(resumed->torn);
  }
}

TEST_CASE("opening a journal cuts the invalid tail off even when nothing is added") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 2);
  const std::string whole = read_bytes(path);
  // Whole records behind the damage go too: their numbers will be given again.
  write_bytes(path, whole + std::string(40, 'x') + whole.substr(whole.size() - 40) + "tail");
  const auto torn = read_journal(path);
  CHECK(torn->torn);
  {
    const ExportJournal journal(path, torn->end, true, [] {});
  }
  CHECK(read_bytes(path) == whole);
}

TEST_CASE("a header cut short anywhere is an error") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 0);
  const std::string whole = read_bytes(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path, whole.substr(0, length));
    const Thrown thrown = thrown_by([&] { read_journal(path); });
    INFO(length << " " << thrown.text);
    CHECK(thrown.code == ErrorCode::file);
    CHECK(thrown.says(path + (length < 8 ? ": byte 0: " : ": header: ")));
  }
}

TEST_CASE("every flipped bit of the header is an error") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 3);
  const std::string whole = read_bytes(path);
  for (size_t bit = 0; bit < 8 * (24 + kHeader.size()); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, bytes);
    const Thrown thrown = thrown_by([&] { read_journal(path); });
    INFO(bit);
    CHECK(thrown.any);
    CHECK(thrown.code == ErrorCode::file);
    CHECK(thrown.says(path + ": "));
  }
}

TEST_CASE("every flipped bit of a record ends the journal there") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 3);
  const std::string whole = read_bytes(path);
  const size_t second = 24 + kHeader.size() + 40;
  for (size_t bit = 0; bit < 8 * 40; ++bit) {
    std::string bytes = whole;
    bytes[second + bit / 8] = static_cast<char>(bytes[second + bit / 8] ^ (1 << bit % 8));
    write_bytes(path, bytes);
    const auto content = read_journal(path);
    INFO(bit);
    REQUIRE(content);
    CHECK(content->records == make_records(0, 1));
    CHECK(content->torn);
    CHECK(content->end.bytes == static_cast<int64_t>(second));
    CHECK(content->end.records == 1);
  }
}

TEST_CASE("records count only in their own place of their own journal") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 3, "header A");
  const std::string a = read_bytes(path);
  write_journal(path, 3, "header B");
  const std::string b = read_bytes(path);
  const size_t begin = 24 + 8;
  const auto valid = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    const auto content = read_journal(path);
    CHECK(content->torn);
    return content->records.size();
  };
  CHECK(valid(a.substr(0, begin) + b.substr(begin)) == 0);
  CHECK(valid(a.substr(0, begin + 40) + b.substr(begin + 40)) == 1);
  CHECK(valid(a + b.substr(begin)) == 3);
  // A journal's own records, one gone, one twice, two exchanged.
  CHECK(valid(a.substr(0, begin + 40) + a.substr(begin + 80)) == 1);
  CHECK(valid(a + a.substr(begin + 80)) == 3);
  CHECK(valid(a.substr(0, begin) + a.substr(begin + 40, 40) + a.substr(begin, 40)) == 0);
  CHECK(valid(a + std::string(400, '\0')) == 3);
}

TEST_CASE("headers longer than the limit are refused before memory is taken") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  const auto read_length = [&](const std::string& length) {
    write_bytes(path, "ATTNJRN1" + length + "{}");
    return thrown_by([&] { read_journal(path); });
  };
  CHECK(read_length(std::string("\1\0\0\4\0\0\0\0", 8))
            .says("header: is too long (got 67108865 bytes, limit 67108864)"));
  CHECK(read_length(std::string(8, '\xff')).says("is too long"));
  CHECK(read_length(std::string("\0\0\0\4\0\0\0\0", 8)).says("(got 18 bytes, needed 67108888)"));
  std::filesystem::remove(path);
  const std::string long_header(static_cast<size_t>(kMaxJournalHeaderBytes) + 1, ' ');
  CHECK(thrown_by([&] { ExportJournal::create(path, long_header, false); }).says("is too long"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a huge file behind a journal costs nothing") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 2);
  std::filesystem::resize_file(path, uintmax_t{64} << 30);
  const auto content = read_journal(path);
  CHECK(content->records == make_records(0, 2));
  CHECK(content->torn);
}

TEST_CASE("creating a journal replaces what was left of another") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 5, "old");
  write_bytes(folder / "precious", "precious");
  // A link must not lead the writer elsewhere.
  std::filesystem::create_symlink(folder / "precious", path + ".tmp");
  ExportJournal::create(path, "new", true);
  CHECK(read_journal(path)->header == "new");
  CHECK(read_journal(path)->records.empty());
  CHECK(read_bytes(folder / "precious") == "precious");
  CHECK_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path + ".tmp")));
  std::filesystem::create_directory(path + ".tmp");
  CHECK(thrown_by([&] { ExportJournal::create(path, "x", true); }).says(".tmp: cannot be removed"));
  CHECK(read_journal(path)->header == "new");
}

TEST_CASE("a journal that cannot be created leaves nothing") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  CHECK(thrown_by([&] { ExportJournal::create(folder / "no/journal", "", true); }).code ==
        ErrorCode::file);
  Thrown thrown;
  {
    const FileSizeLimit limit(100);
    thrown = thrown_by([&] { ExportJournal::create(path, std::string(200, ' '), false); });
  }
  CHECK(thrown.code == ErrorCode::resource);
  CHECK(thrown.says(path + ".tmp: write at offset "));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a folder or a pipe is no journal") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  SECTION("folder") { std::filesystem::create_directory(path); }
  SECTION("pipe") { REQUIRE(mkfifo(path.c_str(), 0600) == 0); }
  const Thrown read = thrown_by([&] { read_journal(path); });
  CHECK(read.code == ErrorCode::file);
  CHECK(read.says(path + ": is no regular file"));
  const Thrown created = thrown_by([&] { ExportJournal::create(path, "", false); });
  CHECK(created.code == ErrorCode::file);
  CHECK(created.says(path + ": is no regular file"));
  const Thrown opened = thrown_by([&] { ExportJournal(path, {0, 24, 0}, false, [] {}); });
  CHECK(opened.code == ErrorCode::file);
  CHECK(opened.says(path + ": "));
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_CASE("a link that stands where a journal is to be created is not replaced") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  std::filesystem::create_symlink(folder / "target", path);
  const Thrown thrown = thrown_by([&] { ExportJournal::create(path, "", false); });
  CHECK(thrown.says(path + ": is no regular file"));
  CHECK(std::filesystem::is_symlink(path));
  CHECK_FALSE(std::filesystem::exists(folder / "target"));
}

TEST_CASE("a journal that shrank since it was read is not continued") {
  const TemporaryFolder folder;
  const std::string path = folder / "journal";
  write_journal(path, 2);
  const JournalEnd end = read_journal(path)->end;
  std::filesystem::resize_file(path, static_cast<uintmax_t>(end.bytes) - 1);
  CHECK(thrown_by([&] { ExportJournal(path, end, false, [] {}); }).says("was cut short"));
  std::filesystem::remove(path);
  CHECK(thrown_by([&] { ExportJournal(path, end, false, [] {}); }).says("cannot be opened"));
}
