// Characters that steer a terminal, or are not to be seen, are escaped in all JSON that is printed
// or written, whatever a capture's facts contain.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/control_characters.h"
#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kModel = "x\u009b31m\u202egpj\u2066\ufeff\u0085";

/// Control characters but line breaks and blanks of the layout.
bool is_plain(const std::string& text) { return attnscope::json_without_controls(text) == text; }

}  // namespace

TEST_CASE("JSON of every command has its control characters escaped") {
  const TemporaryFolder folder;
  const std::string call = folder / "call.safetensors";
  CallFile()
      .pair({1, 1, 12, 4}, {1, 1, 12, 4})
      .fact("model", kModel)
      .fact("layer_name", kModel)
      .fact("layout", "bhsd")
      .fact("grid", "3x2x2")
      .write(call);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"info", call, "--json"},
                                             {"query", call, "--index", "5", "--json"},
                                             {"stats", call, "--json"},
                                             {"mask", call, "--mask", "window:2", "--json"},
                                             {"diff", call, call, "--json"}}) {
    const ProgramResult result = run_attnscope(words);
    INFO(words.front() << "\n" << result.out << result.err);
    CHECK(result.exit_code == 0);
    CHECK(is_plain(result.out));
    CHECK(Json::parse(result.out).is_object());
  }
  const Json info = Json::parse(run_attnscope({"info", call, "--json"}).out);
  CHECK(info.dump().find(kModel) != std::string::npos);
  for (const auto& [words, name] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"stats", call, "-o", folder / "stats.json"}, "stats.json"},
           {{"mask", call, "--mask", "window:2", "-o", folder / "mask.json"}, "mask.json"},
           {{"convert", call, "-o", folder / "copy"}, "copy/capture.json"}}) {
    const ProgramResult result = run_attnscope(words);
    INFO(name << result.err);
    REQUIRE(result.exit_code == 0);
    const std::string text = read_file(folder / name);
    CHECK(is_plain(text));
    CHECK(Json::parse(text).is_object());
  }
}
