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
  // What somebody put there stays theirs.
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
