// Lists of lines with checksums: what is believed of them, and what is not.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/files/summed_lines.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Writes `bytes` and reads them as a list; ends with the error where there is one.
std::vector<std::string> read_list(const TemporaryFolder& folder, const std::string& bytes,
                                   int64_t* end = nullptr) {
  const std::string path = folder / "list";
  std::vector<std::string> texts;
  SummedLineReader lines(path, bytes);
  try {
    while (auto text = lines.next("start anew")) texts.push_back(std::move(*text));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::file);
    texts.emplace_back(error.what());
  }
  if (end != nullptr) *end = lines.bytes();
  return texts;
}

std::string written(const std::vector<std::string>& texts) {
  LineSums sums;
  std::string bytes;
  for (const std::string& text : texts) bytes += sums.add(text);
  return bytes;
}

const std::vector<std::string> kTexts{R"({"format":"x/1"})", "one", "two", "", "two"};

}  // namespace

TEST_CASE("lines that were written are read, and a list that was cut goes on where it was cut") {
  const TemporaryFolder folder;
  const std::string bytes = written(kTexts);
  CHECK(read_list(folder, bytes) == kTexts);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    INFO(size << " bytes");
    int64_t end = 0;
    const auto texts = read_list(folder, bytes.substr(0, size), &end);
    const auto whole = static_cast<size_t>(
        std::count(bytes.begin(), bytes.begin() + static_cast<int64_t>(size), '\n'));
    REQUIRE(texts ==
            std::vector<std::string>(kTexts.begin(), kTexts.begin() + static_cast<int64_t>(whole)));
    LineSums sums;
    std::string again;
    for (const std::string& text : texts) again += sums.add(text);
    CHECK(static_cast<size_t>(end) == again.size());
    for (size_t i = texts.size(); i < kTexts.size(); ++i) again += sums.add(kTexts[i]);
    CHECK(again == bytes);
  }
  CHECK(read_list(folder, "").empty());
}

TEST_CASE("a line that was changed, moved or taken from another list is named") {
  const TemporaryFolder folder;
  const std::string bytes = written(kTexts);
  const std::string path = folder / "list";
  const auto named = [&](size_t line) {
    return path + ": line " + std::to_string(line) +
           ": is damaged: its checksum is wrong (start anew)";
  };
  size_t line = 1;
  for (size_t at = 0; at < bytes.size(); ++at) {
    INFO("byte " << at);
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const auto texts = read_list(folder, damaged);
    // The last line without its break was not written to its end.
    if (at + 1 == bytes.size()) {
      CHECK(texts == std::vector<std::string>(kTexts.begin(), kTexts.end() - 1));
    } else {
      REQUIRE(texts.size() == line);
      CHECK(texts.back() == named(line));
    }
    if (bytes[at] == '\n') ++line;
  }
  std::vector<std::string> lines;
  for (size_t at = 0; at < bytes.size(); at = bytes.find('\n', at) + 1) {
    lines.push_back(bytes.substr(at, bytes.find('\n', at) + 1 - at));
  }
  const auto joined = [&](const std::vector<size_t>& order) {
    std::string all;
    for (const size_t i : order) all += lines[i];
    return all;
  };
  CHECK(read_list(folder, joined({0, 2, 1})).back() == named(2));
  CHECK(read_list(folder, joined({0, 1, 1})).back() == named(3));
  // Equal texts at other places.
  CHECK(read_list(folder, joined({0, 1, 4})).back() == named(3));
  const std::string other = written({R"({"format":"x/2"})", "one"});
  CHECK(read_list(folder, lines[0] + other.substr(other.find('\n') + 1)).back() == named(2));
}

TEST_CASE("the checksum of a line is what the format says") {
  // The low 32 bits of XXH3-64 of the first line's XXH3-64, the number, and the text.
  LineSums sums;
  CHECK(sums.add("{}") == "{} b0a136b7\n");
  CHECK(sums.add("one") == "one efa73e76\n");
}
