#include <string>
#include <vector>

#include "io/files/base64.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TEST_CASE("base64 is RFC 4648's") {
  const std::pair<std::string, std::string> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {"\xff\xfe\xfb", "//77"}};
  for (const auto& [plain, text] : known) {
    INFO(text);
    CHECK(to_base64(bytes_of(plain)) == text);
    std::string back(plain.size(), '?');
    CHECK(from_base64(text, std::as_writable_bytes(std::span(back))));
    CHECK(back == plain);
  }
}

TEST_CASE("what is no base64 of so many bytes is refused") {
  std::vector<std::byte> bytes(4);
  for (const char* const text : {"", "Zm9v", "Zm9vYg=", "Zm9vYmE=", "Zm9vYg==\n",
                                 "Zm9v=g==", "Zm 9Yg==", "Zm9v\xc3Yg=", "Zm9vYg=A", "Zm9vYgA="}) {
    INFO(text);
    CHECK_FALSE(from_base64(text, bytes));
  }
  CHECK(from_base64("AAAAAA==", bytes));
}
