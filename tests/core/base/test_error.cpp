#include <string>

#include "core/base/error.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("an error names file, place and what is wrong") {
  const Error error = file_error("a.npy", "header", "is empty");
  CHECK(error.code() == ErrorCode::file);
  CHECK(std::string(error.what()) == "a.npy: header: is empty");
  CHECK(std::string(file_error("a.npy", "", "is empty").what()) == "a.npy: is empty");
  CHECK(usage_error("--heads 9").code() == ErrorCode::usage);
}

TEST_CASE("text from files becomes one printable line") {
  CHECK(one_line("") == "");
  CHECK(one_line("plain text, ▁Ġ and 日本") == "plain text, ▁Ġ and 日本");
  CHECK(one_line("a\nb\tc") == "a\\nb\\tc");
  CHECK(one_line(std::string("\0\x1b[31m\x7f", 7)) == "\\x00\\x1b[31m\\x7f");
  // U+009B starts a terminal's command as ESC [ does; U+00A0 is a mere space.
  CHECK(one_line("\xc2\x9b"
                 "31m\xc2\xa0") == "\\x9b31m\xc2\xa0");
  // Characters that turn the direction of writing would show "gpj.exe" as "exe.jpg".
  CHECK(one_line("a\u202egpj.exe\u202c \u2066b\u2069 \u061c \u200e\u200f") ==
        "a\\u202egpj.exe\\u202c \\u2066b\\u2069 \\u061c \\u200e\\u200f");
  CHECK(one_line("one\u2028two\u2029three") == "one\\u2028two\\u2029three");
  CHECK(one_line("مرحبا, שלום, \u2010 \u2070") == "مرحبا, שלום, \u2010 \u2070");
  CHECK(one_line("cut \xe2\x80") == "cut \xe2\x80");
  CHECK(one_line("cut at \xc2") == "cut at \xc2");
  const Error error = file_error("a\n.npy", "b\r", "c\x1b");
  CHECK(std::string(error.what()) == "a\\n.npy: b\\x0d: c\\x1b");
}

TEST_CASE("of a long text both ends are kept, whole characters only") {
  for (size_t padding = 0; padding < 3; ++padding) {
    std::string text = "begin " + std::string(padding, '.');
    while (text.size() < 1'000'000) text += "日";
    const std::string line = one_line(text + " end");
    INFO(line);
    CHECK(line.size() < 1300);
    CHECK(line.rfind("begin ", 0) == 0);
    CHECK(line.substr(line.size() - 4) == " end");
    const size_t gap = line.find(" [...] ");
    REQUIRE(gap != std::string::npos);
    CHECK(line.substr(gap - 3, 3) == "日");
    CHECK(line.substr(gap + 7, 3) == "日");
  }
  const std::string just_fits(1200, 'x');
  CHECK(one_line(just_fits) == just_fits);
}
