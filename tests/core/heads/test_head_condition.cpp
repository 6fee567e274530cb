#include <limits>
#include <map>

#include "core/heads/head_condition.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using attnscope::test::refused;

namespace {

/// Head 3 of layer 12, temporal, entropy 4.5, no text at all.
struct Fixture {
  HeadName name{10, 12, "cond", "joint", 0, 3, {.block = "blocks.12", .slot = "attn1"}};
  std::optional<HeadClass> head_class = HeadClass::temporal;
  std::map<std::string_view, double> numbers{
      {"entropy", 4.5}, {"text_mass", std::numeric_limits<double>::quiet_NaN()}};

  bool holds(const std::string& text) const {
    const auto number = [&](const HeadField& field) -> std::optional<double> {
      const auto found = numbers.find(field.name);
      return found == numbers.end() ? std::nullopt : std::optional(found->second);
    };
    return HeadCondition::parse(text, "--where").holds({name, head_class, number});
  }
};

}  // namespace

TEST_CASE("conditions on heads compare names and numbers") {
  const Fixture head;
  for (const char* yes : {"class=temporal",
                          "temporal",
                          "class=sink,temporal",
                          "class!=sink",
                          "entropy<5",
                          "entropy < 5",
                          "entropy<=4.5",
                          "entropy>=4.5",
                          "entropy>4",
                          "entropy=4.5",
                          "entropy!=4",
                          "layer=12",
                          "layer>=10",
                          "layer=3,10-14",
                          "layer!=3-7",
                          "step=10",
                          "head=3",
                          "batch=0",
                          "branch=cond",
                          "branch=c*",
                          "kind=joint",
                          "block=blocks.*",
                          "slot=attn1,attn2",
                          "slot!=audio_*",
                          "class=temporal entropy<5 layer>=10",
                          "entropy<1 or layer=12",
                          "not entropy<1",
                          "not (class=sink or class=text) and branch=cond",
                          "(temporal)",
                          "sink or (temporal head=3)",
                          "entropy>-1",
                          "entropy<1e3",
                          "not not head=3"}) {
    INFO(yes);
    CHECK(head.holds(yes));
  }
  for (const char* no :
       {"class=sink", "class!=temporal", "sink", "entropy<4.5", "entropy>4.5", "entropy!=4.5",
        "layer=13", "layer!=10-14", "head=4", "branch=uncond", "slot=attn", "temporal entropy<1",
        "sink or text", "not temporal", "not (temporal or sink)", "sink temporal or head=4"}) {
    INFO(no);
    CHECK_FALSE(head.holds(no));
  }
}

TEST_CASE("a comparison with what is not known takes no head, under `not` neither") {
  Fixture head;
  // No text, and no number of that name.
  for (const char* neither :
       {"text_mass<1", "text_mass>=0", "not text_mass<1", "not text_mass>=0", "text_mass!=1",
        "max_weight<1", "not max_weight<1", "chunk=0", "not chunk=0", "chunk!=0",
        "not (text_mass<1 or sink)", "text_mass<1 temporal"}) {
    INFO(neither);
    CHECK_FALSE(head.holds(neither));
  }
  // The rest decides.
  CHECK(head.holds("text_mass<1 or temporal"));
  CHECK(head.holds("not (text_mass<1 sink)"));
  head.head_class.reset();
  head.name.layer = kNoLayer;
  head.name.place.slot.clear();
  head.name.place.unrecorded = {.step = true, .branch = true};
  for (const char* fact : {"temporal", "class!=sink", "layer<99", "layer!=3", "slot=*", "slot!=a",
                           "step=10", "branch=cond"}) {
    INFO(fact);
    CHECK_FALSE(head.holds(fact));
    CHECK_FALSE(head.holds(std::string("not ") + fact));
  }
  CHECK(HeadCondition::parse("layer=3 or entropy<1", "--where").asks_for_numbers());
  CHECK(HeadCondition::parse("not class=sink", "--where").asks_for_numbers());
  CHECK_FALSE(HeadCondition::parse("layer=3 branch=cond", "--where").asks_for_numbers());
  CHECK(HeadCondition().holds({head.name}));
}

TEST_CASE("conditions that cannot be read name the word") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "expected a condition"},
      {"entropi<5", "\"entropi<5\": no such number, did you mean entropy?"},
      {"entropy", "\"entropy\": expected NAME=VALUE"},
      {"entropy<", "\"entropy<\": a value is missing"},
      {"entropy<low", "\"entropy<low\": expected a number"},
      {"entropy<1,2", "\"entropy<1,2\": expected a number"},
      {"entropy<nan", "\"entropy<nan\": expected a number"},
      {"layer=7-3", "\"layer=7-3\": expected a number"},
      {"layer=3,", "\"layer=3,\": expected a number"},
      {"entropy!5", "\"entropy!\": expected =, !="},
      {"branch<cond", "branch is a name, which is = or !="},
      {"class>sink", "class is a name"},
      {"class=sinks", "\"class=sinks\": the classes are sink, text, temporal"},
      {"(sink", "\"(\": the bracket is not closed"},
      {"sink)", "\")\": no bracket is open"},
      {"sink or", "its end: a condition is missing"},
      {"not", "its end: a condition is missing"},
      {"or sink", "\"or\""},
      {"sink and", "its end: a condition is missing"}};
  for (const auto& [text, part] : cases) {
    INFO(text);
    CHECK(refused([&, &text = text] { HeadCondition::parse(text, "--where"); }, ErrorCode::usage,
                  {"--where: ", part}) == "");
  }
}

TEST_CASE("a name alone tells where no number could make a condition hold") {
  HeadName unknown{10, 0, "all", "joint", 0, 3, {}};
  unknown.place.unrecorded = {.step = false, .layer = true, .branch = true};
  for (const auto& [text, may_hold] : std::vector<std::pair<const char*, bool>>{
           {"layer>=3 and entropy<5", false},
           {"layer>=3 or entropy<5", true},
           {"not (layer>=3 or entropy<5)", false},
           {"not (layer>=3 and entropy<5)", true},  // where entropy is not below 5
           {"branch=cond temporal", false},
           {"not branch=cond temporal", false},
           {"step=10 temporal", true},
           {"step=11 temporal", false},
           {"not temporal", true},
           {"temporal and not (entropy<5 and layer=2)", true},
           {"layer=2", false},
           {"entropy<5", true}}) {
    INFO(text);
    CHECK(HeadCondition::parse(text, "--where").may_hold(unknown) == may_hold);
  }
}
