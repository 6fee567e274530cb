// Lists of heads that the window writes, with the rows that --from reads.
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "tests/support/helpers.h"
#include "viewer/session/head_list_file.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("a written list has every fact that is known of a head, and no other") {
  const TemporaryFolder folder;
  HeadPattern all;
  all.step = 10;
  all.layer = -1;
  all.branch = "cond \"x\"";
  all.kind = "joint";
  all.block = "refiner.0";
  all.slot = "attn";
  all.chunk = 2;
  all.batch = 1;
  all.head = 7;
  HeadPattern few;
  few.layer = 3;
  const std::vector<HeadPattern> heads{all, few};
  const std::string file = folder / "heads.json";
  write_head_list(heads, file, false, {});
  using nlohmann::json;
  CHECK(json::parse(read_bytes(file)) == json{{"format", "attnscope-heads/1"},
                                              {"heads",
                                               {{{"step", 10},
                                                 {"layer", -1},
                                                 {"branch", "cond \"x\""},
                                                 {"kind", "joint"},
                                                 {"block", "refiner.0"},
                                                 {"slot", "attn"},
                                                 {"chunk", 2},
                                                 {"batch", 1},
                                                 {"head", 7}},
                                                {{"layer", 3}, {"head", 0}}}}});
  // Nothing is replaced unless that is asked for, and a list has its ending.
  thrown_text(ErrorCode::file, [&] { write_head_list(heads, file, false, {}); });
  CHECK_NOTHROW(write_head_list(heads, file, true, {}));
  CHECK(has(usage_text([&] { write_head_list(heads, folder / "heads.txt", false, {}); }), ".json"));
}
