// How much of JSON is read from files that nobody vouches for.
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "io/files/strict_json.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string refusal(const std::string& text, const JsonLimits& limits = {},
                    ErrorCode code = ErrorCode::file) {
  return thrown_text(code, [&] { parse_strict_json(text, "FILE", "header", limits); });
}

}  // namespace

TEST_CASE("strings and numbers of JSON are measured before they are read") {
  constexpr size_t kString = 4 << 20;
  const std::string longest(kString - 2, 'x');  // and its quotes
  CHECK(parse_strict_json("\"" + longest + "\"", "FILE", "header") == longest);
  CHECK(refusal("[1, \"" + longest + "x\"]") ==
        "FILE: header: a string of the JSON is too long (byte 5, limit 4194304)");
  // A quote behind a backslash ends no string, one behind two does.
  CHECK(refusal("[\"\\\"" + longest + "\"]").find("string of the JSON is too long") !=
        std::string::npos);
  CHECK(parse_strict_json(R"(["\\", "a"])", "FILE", "header").size() == 2);
  CHECK(refusal("{\"" + longest + "x\": 1}").find("byte 2,") != std::string::npos);
  CHECK(refusal("\"" + longest + "xx").find("string of the JSON is too long") != std::string::npos);
  const std::string digits(1022, '1');
  CHECK(parse_strict_json("0." + digits, "FILE", "header").is_number_float());
  CHECK(refusal("0." + digits + "1") ==
        "FILE: header: a number of the JSON is too long (byte 1, limit 1024)");
  CHECK(refusal("\"a").find("is no valid JSON") != std::string::npos);
  CHECK(refusal("\"a\\").find("is no valid JSON") != std::string::npos);
}

TEST_CASE("JSON takes no more memory than it may") {
  std::string text = "[";
  for (int i = 0; i < 10000; ++i) text += R"({"file":"a"},)";
  text += "0]";
  CHECK(parse_strict_json(text, "FILE", "header").size() == 10001);
  CHECK(refusal(text, {.memory = 1 << 20}, ErrorCode::resource) ==
        "FILE: header: its JSON takes more memory than it may (limit 1.00 MiB; a larger --memory "
        "allows more)");
  CHECK(refusal(text, {.memory = 1000}, ErrorCode::resource).find("limit ") != std::string::npos);
  CHECK(refusal(text, {.values = 100}) == "FILE: header: JSON has too many values (limit 100)");
}
