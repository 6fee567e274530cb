#include <nlohmann/json.hpp>
#include <string>

#include "cli/run/run_steps.h"
#include "io/files/json_types.h"
#include "tests/support/catch.h"

namespace attnscope {

TEST_CASE("runs say what they do in the same words") {
  CHECK(heads_text(1) == "1 head");
  CHECK(heads_text(6) == "6 heads");
  RunPlan plan;
  CHECK(about_text(plan, " of computation").empty());
  plan.seconds = 250;
  CHECK(about_text(plan) == ", about 4 min 10 s");
  CHECK(about_text(plan, " of computation") == ", about 4 min 10 s of computation");
}

TEST_CASE("what an interruption leaves is told with the way to go on") {
  const KeptParts kept{3, 12, "tiles", "maps.h5.part"};
  CHECK(leftover_text(kept) == "3 of 12 tiles are in maps.h5.part; --resume goes on");
  CHECK(resuming_text(kept) == "resuming maps.h5.part: 3 of 12 tiles are there");
  CHECK(leftover_text({0, 12, "heads", "s.json.part"}) == kNothingKept);
  const Error error = interrupted_error(leftover_text({}));
  CHECK(error.code() == ErrorCode::interrupted);
  CHECK(std::string(error.what()) == "interrupted: nothing was kept");
}

TEST_CASE("a result is printed as JSON where asked, as text unless it is in a file") {
  int json = 0, text = 0;
  for (const bool as_json : {false, true}) {
    for (const bool in_file : {false, true}) {
      print_result(
          as_json, in_file,
          [&] {
            ++json;
            return OrderedJson::object();
          },
          [&] { ++text; });
    }
  }
  CHECK(json == 2);
  CHECK(text == 1);
}

}  // namespace attnscope
