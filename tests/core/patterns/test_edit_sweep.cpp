#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/patterns/edit_sweep.h"
#include "core/patterns/mask_pattern.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

std::string swept(const std::string& text) {
  std::string all;
  for (const std::string& edit : swept_edits(text, "--edit"))
    all += (all.empty() ? "" : " ") + edit;
  return all;
}

std::string refusal(const std::string& text) {
  try {
    swept_edits(text, "--edit");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("lists and ranges of values stand for an edit each") {
  CHECK(swept("sol") == "sol");
  CHECK(swept("dense") == "none");
  CHECK(swept("sol:tau=1") == "sol:tau=1");
  CHECK(swept("sol:tau=0.5/1,rest=row/lost") ==
        "sol:tau=0.5,rest=row sol:tau=0.5,rest=lost sol:tau=1,rest=row sol:tau=1,rest=lost");
  CHECK(swept("vsa:keep=0.1..0.5:5,tile=2x4x4") ==
        "vsa:keep=0.1,tile=2x4x4 vsa:keep=0.2,tile=2x4x4 vsa:keep=0.3,tile=2x4x4 "
        "vsa:keep=0.4,tile=2x4x4 vsa:keep=0.5,tile=2x4x4");
  CHECK(swept("window:64/128") == "window:64 window:128");
  CHECK(swept("sla:order=tiles:4x8x8/hilbert") == "sla:order=tiles:4x8x8 sla:order=hilbert");
  CHECK(swept("sol:tau=-1..1:3") == "sol:tau=-1 sol:tau=0 sol:tau=1");
  // Names of files are no lists.
  CHECK(swept("dump/step=1/blocks.npy") == "dump/step=1/blocks.npy");
  CHECK(swept("a/b.json") == "a/b.json");
}

TEST_CASE("a range that is none is refused") {
  for (const std::string text :
       {"vsa:keep=0.1..0.5", "vsa:keep=0.1..0.5:1", "vsa:keep=..0.5:3", "vsa:keep=0.1..x:3",
        "vsa:keep=0.1..0.5:2.5", "vsa:keep=0..1:999", "vsa:keep=0.1..0.5:nan",
        "vsa:keep=0.1..0.5:1e300", "vsa:keep=0.1..0.5:-1e300"}) {
    INFO(text);
    CHECK(refusal(text).find("FROM..TO:COUNT") != std::string::npos);
  }
  CHECK(refusal("sol:tau=0..1:200,keep=0..1:200").find("more than 256") != std::string::npos);
}

TEST_CASE("what a name stands for where one chooses is valid") {
  for (const std::string& name : mask_pattern_names()) {
    if (name == "window" || name == "block_causal" || name == "natten") continue;
    INFO(name);
    const std::vector<std::string> edits = swept_edits(usual_sweep(name), "--among");
    for (const std::string& edit : edits) CHECK_NOTHROW(parse_mask_pattern(edit, "--among"));
    const bool has_budget = name != "none" && name != "causal" && name != "temporal" &&
                            name != "vertical-slash" && name != "ssta";
    CHECK((edits.size() > 1) == has_budget);
  }
  CHECK(usual_sweep("vsa:keep=0.3") == "vsa:keep=0.3");
}
