#include <set>

#include "core/problem/head_name.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("a call is named by what was recorded of it") {
  const auto unknown = [](bool step, bool layer, bool branch) {
    ModelPlace place;
    place.unrecorded = {step, layer, branch};
    return place;
  };
  CHECK(call_words(10, 3, "cond", "joint", {}) == "step 10 layer 3 cond joint");
  CHECK(call_words(10, 3, "cond", "joint", {}, ", ") == "step 10, layer 3, cond, joint");
  CHECK(call_words(0, 3, "all", "self", unknown(true, false, true)) == "layer 3 self");
  CHECK(call_words(0, 0, "all", "self", unknown(true, true, true)) == "self");
  CHECK(call_words(0, 0, "all", "", unknown(true, true, true), ", ").empty());
  CHECK(layer_text(0, unknown(false, true, false)).empty());
  ModelPlace slot = unknown(false, true, false);
  slot.slot = "attn1";
  slot.chunk = 2;
  CHECK(layer_text(0, slot) == "attn1 chunk 2");
  CHECK(layer_text(kNoLayer, {"refiner.0", "attn"}) == "refiner.0.attn");
  HeadName name{0, 4, "all", "self", 1, 5, unknown(true, false, true)};
  CHECK(head_words(name) == "layer 4 self batch 1 head 5");
}

TEST_CASE("what was not recorded tells no two calls apart") {
  HeadName known{0, 0, "all", "self", 0, 0}, unknown = known;
  unknown.place.unrecorded = {true, true, true};
  CHECK(known == unknown);
  CHECK(std::set<HeadName>{known, unknown}.size() == 1);
  unknown.step = 1;
  CHECK(known < unknown);
}

TEST_CASE("names of what was not recorded come back from files") {
  for (int bits = 0; bits < 8; ++bits) {
    const Unrecorded facts{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    const Unrecorded back = Unrecorded::parse(facts.text() + " model");
    CHECK(back.step == facts.step);
    CHECK(back.layer == facts.layer);
    CHECK(back.branch == facts.branch);
    CHECK(facts.any() == (bits != 0));
  }
  CHECK(Unrecorded{true, false, true}.text() == "step branch");
  CHECK_FALSE(Unrecorded::parse("steps layer_name").any());
}
