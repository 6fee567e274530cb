#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/output_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;
namespace fs = std::filesystem;

namespace {

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

void write(const OutputFile& file, std::string_view text) {
  file.write_at(std::as_bytes(std::span(text)), 0);
}

}  // namespace

TEST_CASE("what was put in the place of a part is not given the output's name") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.bin";
  const std::string secret = folder / "secret";
  write_text(secret, "private");
  const bool replaces = GENERATE(false, true);
  if (replaces) write_text(out, "precious");
  struct Case {
    const char* what;
    std::function<void(const fs::path& part)> put;
  };
  const std::vector<Case> cases{
      {"a foreign file", [](const fs::path& part) { write_text(part, "foreign"); }},
      {"a symbolic link", [&](const fs::path& part) { fs::create_symlink(secret, part); }},
      {"a link to another file", [&](const fs::path& part) { fs::create_hard_link(secret, part); }},
      {"nothing", [](const fs::path&) {}},
  };
  const Case c = GENERATE_REF(from_range(cases));
  INFO(c.what);
  const fs::path part = out + ".part";
  {
    OutputFile file(out, {.force = replaces});
    file.create_part();
    write(file, "computed");
    fs::remove(part);
    c.put(part);
    CHECK(refused([&] { file.commit(); }, ErrorCode::file,
                  {part.string() + ": is not the file that this run wrote"}) == "");
  }
  CHECK(read_bytes(secret) == "private");
  CHECK(fs::exists(out) == replaces);
  if (replaces) CHECK(read_bytes(out) == "precious");
  // A file that somebody put there stays theirs.
  if (std::string_view(c.what) == "a foreign file") CHECK(read_bytes(part) == "foreign");
  if (std::string_view(c.what) == "a symbolic link") CHECK(fs::is_symlink(part));
}

TEST_CASE("a part that was built by a library is opened as itself, not through a link") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.bin";
  write_text(folder / "secret", "private");
  OutputFile file(out, {});
  fs::create_symlink(folder / "secret", file.new_part_path());
  CHECK(refused([&] { file.open_new_part(7); }, ErrorCode::file, {file.new_part_path().string()}) ==
        "");
  CHECK(read_bytes(folder / "secret") == "private");
}

TEST_CASE("what goes past the page cache, and what cannot, is read back as one file") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.bin";
  constexpr size_t kPage = 4096;
  std::vector<std::byte> expected(40 * kPage);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<std::byte>(i * 7 + i / 255);
  // On a page, and one byte further.
  std::vector<std::byte> memory(expected.size() + 2 * kPage);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  std::byte* const page = memory.data() + (kPage - address % kPage) % kPage;
  OutputFile file(out, {});
  file.create_part();
  const bool bypasses = file.bypass_page_cache();
  if (!bypasses) WARN("this file system has nothing but the page cache");
  const auto write_piece = [&](size_t begin, size_t count, size_t shift) {
    std::copy_n(expected.data() + begin, count, page + shift);
    file.write_at({page + shift, count}, static_cast<int64_t>(begin));
  };
  write_piece(0, 10 * kPage, 0);                    // whole pages
  write_piece(10 * kPage, 10 * kPage, 1);           // in the file only
  write_piece(20 * kPage, 5 * kPage + 17, 0);       // with a rest
  write_piece(25 * kPage + 17, 5 * kPage - 17, 0);  // up to a page
  write_piece(30 * kPage, 10 * kPage, 0);
  write_piece(5, 3, 0);  // over what went to the disk
  file.sync_data();
  file.commit();
  const std::string got = read_bytes(out);
  REQUIRE(got.size() == expected.size());
  CHECK(std::memcmp(got.data(), expected.data(), got.size()) == 0);
}
