// Heads and lists of captures that are large, or only pretend to be something: a refusal within
// the memory that a run may take.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"

using namespace attnscope::test;

namespace {

constexpr int64_t kMiB = 1 << 20;

struct Case {
  const char* what;
  std::string begin, repeated, end;
  const char* word;  ///< of the message
};

/// The middle is repeated until the text is 42 MB long.
const std::vector<Case> kCases{
    {"calls", R"("calls":[)", R"({"file":"a.safetensors"},)", R"({"file":"b"}])", "memory"},
    {"objects", R"("extra":[)", R"({"a":{}},)", "0]", "memory"},
    {"empty lists", R"("extra":[)", "[],", "0]", "memory"},
    {"numbers", R"("extra":[)", "0,", "0]", "(limit "},
    {"a number", R"("extra":)", "1", "", "number of the JSON is too long"},
    {"a string", R"("extra":")", "x", "\"", "string of the JSON is too long"},
    {"a string of escapes", R"("extra":")", R"(\u0041)", "\"", "string of the JSON is too long"},
    {"a key", "\"", "x", "\":0", "string of the JSON is too long"},
    {"a word", R"("extra":)", "nul", "", "number of the JSON is too long"},
    {"depth", R"("extra":)", "[", "", "nested deeper"},
    {"no end", R"("extra":")", "x", "", "string of the JSON is too long"}};

/// Written piece by piece: a child's peak is at least what its parent had when it was made.
void write_case(const std::filesystem::path& path, const Case& c, bool with_length) {
  constexpr int64_t kBytes = 42'000'000;
  std::string piece;
  while (piece.size() < 1 << 16) piece += c.repeated;
  const auto pieces = kBytes / static_cast<int64_t>(piece.size());
  const std::string begin = R"({"format":"attnscope-capture/1",)" + c.begin;
  const std::string end = c.end + "}";
  std::ofstream file(path, std::ios::binary);
  if (with_length) {
    const auto length = static_cast<uint64_t>(begin.size() + end.size()) +
                        static_cast<uint64_t>(pieces) * piece.size();
    for (int shift = 0; shift < 64; shift += 8) file << static_cast<char>(length >> shift & 0xff);
  }
  file << begin;
  for (int64_t i = 0; i < pieces; ++i) file << piece;
  file << end;
}

}  // namespace

TEST_CASE("hostile JSON is refused within the memory of a run") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
    return;
  }
  for (const Case& c : kCases) {
    const TemporaryFolder folder;
    write_case(folder / "capture.json", c, false);
    // That JSON again, as the header of a tensor file.
    write_case(folder / "head.safetensors", c, true);
    for (const std::string& path : {folder.path().string(), folder / "head.safetensors"}) {
      const auto result = run_attnscope({"stats", path, "--memory", "128MiB"});
      INFO(c.what << " in " << path << ": peak " << result.peak_bytes / kMiB << " MiB\n"
                  << result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.err.find(c.word) != std::string::npos);
      CHECK(result.err.size() < 1000);
      CHECK(result.peak_bytes <= (128 + 64) * kMiB);
    }
  }
}
