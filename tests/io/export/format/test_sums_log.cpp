#include <array>
#include <fstream>
#include <string>

#include "core/base/error.h"
#include "io/export/format/sums_log.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string replayed(const std::string& log, const TemporaryFolder& folder) {
  const std::string path = folder / "file";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << std::string(12, '.');
  replay_sums(log, PosixFile(path, PosixFile::Mode::existing));
  return read_bytes(path);
}

}  // namespace

TEST_CASE("pieces of a log come to their places, and none that is cut short or damaged") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  {
    SumsLog log(path, true);
    log.add(bytes_of("abc"), 4);
    log.sync();
    log.add(bytes_of("de"), 10);
    log.add({}, 0);
    log.add(bytes_of("x"), 5);
    log.sync();
    log.add(bytes_of("lost"), 0);  // never synced
  }
  const std::string whole = read_bytes(path);
  CHECK(whole.size() == 8 + 4 * 20 + 6);
  CHECK(replayed(path, folder) == "....axc...de");
  CHECK(replayed(folder / "none", folder) == "............");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    INFO(bytes << " bytes of the log");
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, bytes);
    const std::string expected = bytes < 31   ? "............"
                                 : bytes < 53 ? "....abc....."
                                              : "....abc...de";
    CHECK(replayed(path, folder) == expected);
  }
  for (size_t at = 8; at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] ^= 1;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    const std::string expected = at < 31   ? "............"
                                 : at < 53 ? "....abc....."
                                           : "....abc...de";
    INFO("byte " << at);
    CHECK(replayed(path, folder) == expected);
  }
}

TEST_CASE("a log that is none, or of a larger file, is refused") {
  const TemporaryFolder folder;
  std::ofstream(folder / "text") << "something else";
  CHECK_THROWS_WITH(replayed(folder / "text", folder), Catch::Contains("is no log of checksums"));
  {
    SumsLog log(folder / "log", false);
    log.add(bytes_of("abc"), 10);
    log.sync();
  }
  CHECK_THROWS_WITH(replayed(folder / "log", folder),
                    Catch::Contains("a place that the export does not have (got 10, limit 9)"));
  CHECK_THROWS_AS(SumsLog(folder / "log", false), Error);
}
