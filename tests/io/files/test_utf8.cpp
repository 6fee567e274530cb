#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "io/files/strict_json.h"
#include "io/files/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Case {
  const char* what;
  std::string bytes;
};

const Case kGood[] = {{"nothing", ""},
                      {"ASCII", "q.npy\x7f"},
                      {"the least and greatest of two bytes", "\xc2\x80\xdf\xbf"},
                      {"the least of three bytes", "\xe0\xa0\x80"},
                      {"before and after the surrogates", "\xed\x9f\xbf\xee\x80\x80"},
                      {"the greatest of three bytes", "\xef\xbf\xbf"},
                      {"the least and greatest of four bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"}};

const Case kBad[] = {{"a slash in two bytes", "\xc0\xaf"},
                     {"the greatest overlong of two bytes", "\xc1\xbf"},
                     {"the greatest overlong of three bytes", "\xe0\x9f\xbf"},
                     {"the greatest overlong of four bytes", "\xf0\x8f\xbf\xbf"},
                     {"the first surrogate", "\xed\xa0\x80"},
                     {"the last surrogate", "\xed\xbf\xbf"},
                     {"beyond U+10FFFF", "\xf4\x90\x80\x80"},
                     {"five bytes", "\xf8\x88\x80\x80\x80"},
                     {"a continuation alone", "a\x80"},
                     {"a lead alone", "\xe2\x82"},
                     {"a lead before ASCII", "\xc3(a"}};

}  // namespace

TEST_CASE("UTF-8 has one spelling of every character and none of what is no character") {
  for (const Case& c : kGood) {
    INFO(c.what);
    CHECK(valid_utf8(c.bytes));
  }
  for (const Case& c : kBad) {
    INFO(c.what);
    CHECK(!valid_utf8(c.bytes));
  }
}

TEST_CASE("JSON is held to the same UTF-8") {
  for (const Case& c : kGood) {
    INFO(c.what);
    CHECK(parse_strict_json("\"" + c.bytes + "\"", "FILE", "header") == c.bytes);
  }
  for (const Case& c : kBad) {
    INFO(c.what);
    const std::string error = thrown_text(
        ErrorCode::file, [&] { parse_strict_json("\"" + c.bytes + "\"", "FILE", "header"); });
    CHECK(error.find("is no valid JSON: byte") != std::string::npos);
  }
}
