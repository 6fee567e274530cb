#include <string>

#include "core/base/control_characters.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("control characters are those that steer a terminal or are not to be seen") {
  for (const std::string text :
       {"\x01", "\x1b", "\x7f", "\u0080", "\u009b", "\u009f", "\u061c", "\u200b", "\u200e",
        "\u2028", "\u202e", "\u2060", "\u2066", "\u206f", "\ufeff", "\ufff9"}) {
    INFO(without_controls(text));
    const auto control = control_character_at(text, 0);
    REQUIRE(control);
    CHECK(control->bytes == text.size());
  }
  // A space, letters, what shapes the words of a script, an emoji, a lone byte, half a character.
  for (const std::string text :
       {"\u00a0", "é", "日", "\u200c", "\u200d", "😀", "\x9b", "\xe2\x80"}) {
    INFO(text);
    CHECK_FALSE(control_character_at(text, 0));
  }
  // Longer than it needs to be, some terminals read it all the same.
  CHECK(without_controls("\xe0\x82\x9b") == "\\x9b");
  CHECK(without_controls("a\nb\t\u009b\u202e\ufeff") == "a\\nb\\t\\x9b\\u202e\\ufeff");
}

TEST_CASE("JSON without control characters has the same value, and its own line breaks") {
  CHECK(json_without_controls("{\n  \"a\u009b\": \"\u202eb\ufeff\x7f é\"\n}") ==
        "{\n  \"a\\u009b\": \"\\u202eb\\ufeff\\u007f é\"\n}");
  CHECK(json_without_controls("[1]") == "[1]");
}

TEST_CASE("lines of another program keep their ends and tabs, and nothing else that steers") {
  CHECK(lines_without_controls("one\r\n\ttwo\n") == "one\n\ttwo\n");
  CHECK(lines_without_controls("\x1b]0;title\x07\x1b[31mred\u009b0m") ==
        "\\x1b]0;title\\x07\\x1b[31mred\\x9b0m");
  CHECK(lines_without_controls("90 %\r100 %\n") == "90 %\\x0d100 %\n");
  CHECK(lines_without_controls("") == "");
}

TEST_CASE("what is not whole yet at the end of a text is known") {
  CHECK(whole_characters("") == 0);
  CHECK(whole_characters("ab") == 2);
  CHECK(whole_characters("ab\r") == 2);
  CHECK(whole_characters("a\xc2") == 1);
  CHECK(whole_characters("a\u009b") == 3);
  CHECK(whole_characters("a\xe2\x80") == 1);
  CHECK(whole_characters("a\xf0\x9f\x98") == 1);
  CHECK(whole_characters("a😀") == 5);
  CHECK(whole_characters("\x80\x80\x80\x80") == 4);
}
