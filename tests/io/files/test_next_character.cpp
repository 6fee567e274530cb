#include <vector>

#include "io/files/utf8.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

std::vector<char32_t> characters(std::string_view text) {
  std::vector<char32_t> found;
  for (size_t at = 0; at < text.size();) found.push_back(next_character(text, at));
  return found;
}

}  // namespace

TEST_CASE("characters of one to four bytes are read one after the other") {
  CHECK(characters("aé猫\U0001f600z") == std::vector<char32_t>{'a', 0xe9, 0x732b, 0x1f600, 'z'});
  CHECK(characters("").empty());
  CHECK(characters(std::string_view("\0b", 2)) == std::vector<char32_t>{0, 'b'});
}

TEST_CASE("what is broken of a sequence is one odd character, and what follows is read") {
  const char32_t odd = kReplacementCharacter;
  CHECK(characters("\xff\xc3") == std::vector<char32_t>{odd, odd});
  CHECK(characters("\x80\x80x") == std::vector<char32_t>{odd, odd, 'x'});
  CHECK(characters("\xe7\x8cx") == std::vector<char32_t>{odd, 'x'});
  CHECK(characters("\xf0\x9f\x98") == std::vector<char32_t>{odd});
  CHECK(characters("\xf7\xbf\xbf\xbf") == std::vector<char32_t>{odd});  // beyond U+10FFFF
  CHECK(characters("\xc0\xaf\xed\xa0\x80") ==
        std::vector<char32_t>{odd, odd});  // overlong, a surrogate
  CHECK(characters("\xc3\xc3\xa9") == std::vector<char32_t>{odd, 0xe9});
}
