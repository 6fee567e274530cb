#include "core/problem/head_choice.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using attnscope::test::contains;
using attnscope::test::refused;
using attnscope::test::thrown_text;

namespace {

HeadName head_at(int64_t step, int64_t layer, int64_t head, const std::string& branch = "cond",
                 const ModelPlace& place = {}) {
  return {step, layer, branch, "self", 0, head, place};
}

std::vector<HeadPattern> patterns(const std::vector<std::string>& texts) {
  std::vector<HeadPattern> all;
  for (const std::string& text : texts) all.push_back(HeadPattern::parse(text, "--pick"));
  return all;
}

/// Two steps, three layers of four heads, and a refiner outside the stack.
std::vector<HeadName> all_heads() {
  std::vector<HeadName> heads;
  for (const int64_t step : {0, 10}) {
    for (int64_t head = 0; head < 4; ++head) {
      for (int64_t layer = 0; layer < 3; ++layer) heads.push_back(head_at(step, layer, head));
      heads.push_back(
          head_at(step, kNoLayer, head, "cond", {.block = "refiner.0", .slot = "attn"}));
    }
  }
  return heads;
}

std::vector<HeadName> taken(const CallSelection& selection, std::vector<std::string>* missing) {
  HeadChoice choice(selection, "this capture");
  for (const HeadName& head : all_heads()) choice.add(head);
  choice.resolve();
  std::vector<HeadName> taken;
  for (const HeadName& head : all_heads()) {
    if (choice.takes(head)) taken.push_back(head);
  }
  if (taken.empty()) throw choice.nothing_left();
  *missing = choice.missing();
  return taken;
}

CallSelection picked(const std::vector<std::string>& texts) {
  CallSelection selection;
  selection.sets.push_back(std::make_shared<const HeadSet>(patterns(texts), "--pick"));
  return selection;
}

}  // namespace

TEST_CASE("a picked head is named by layer, step or block") {
  const ModelPlace refiner{.block = "refiner.0", .slot = "attn"};
  struct Case {
    std::string text;
    HeadName yes, no;
  };
  const std::vector<Case> cases{
      {"3.1", head_at(7, 3, 1), head_at(7, 1, 3)},
      {"10:3.1", head_at(10, 3, 1), head_at(11, 3, 1)},
      {"refiner.0.2", head_at(0, kNoLayer, 2, "cond", refiner), head_at(0, 0, 2)},
      {"refiner.0/attn.2", head_at(0, kNoLayer, 2, "cond", refiner),
       head_at(0, kNoLayer, 2, "cond", {.block = "refiner.0", .slot = "cross"})},
      {"5:refiner.0/attn.2", head_at(5, 1, 2, "cond", refiner), head_at(6, 1, 2, "cond", refiner)},
      {"a.b.3", head_at(0, 0, 3, "cond", {.block = "a.b", .slot = ""}), head_at(0, 0, 3)}};
  for (const Case& c : cases) {
    INFO(c.text);
    const HeadPattern pattern = HeadPattern::parse(c.text, "--pick");
    CHECK(pattern.matches(c.yes));
    CHECK_FALSE(pattern.matches(c.no));
    CHECK(pattern.text() == c.text);
    const HeadSet set({pattern}, "--pick");
    CHECK(set.contains(c.yes));
    CHECK_FALSE(set.contains(c.no));
  }
  for (const std::string wrong : {"", "3", ".", "3.", ".3", "3.x", "x:3.1", ":3.1", "-3", "3.-1",
                                  "3:1", "/attn.1", "refiner/.1", "1.99999999999999999999"}) {
    INFO(wrong);
    CHECK(refused([&] { HeadPattern::parse(wrong, "--pick"); }, ErrorCode::usage,
                  {"--pick " + wrong + ": expected LAYER.HEAD"}) == "");
  }
}

TEST_CASE("sets of heads narrow what lists select, and tell what is not there") {
  std::vector<std::string> missing;
  CallSelection selection = picked({"0.1", "2.3", "refiner.0.0"});
  CHECK(taken(selection, &missing) == std::vector<HeadName>{all_heads()[3], all_heads()[4],
                                                            all_heads()[14], all_heads()[19],
                                                            all_heads()[20], all_heads()[30]});
  CHECK(missing.empty());
  selection.steps = Selection::parse("10,11", "--steps");
  selection.layers = Selection::parse("0", "--layers");
  CHECK(taken(selection, &missing) == std::vector<HeadName>{head_at(10, 0, 1)});
  CHECK(missing == std::vector<std::string>{"--steps 10,11: 11 does not exist (there are 0, 10)"});
  // Each of several sets narrows.
  selection = picked({"0.1", "1.1", "9.1", "1.7"});
  selection.sets.push_back(std::make_shared<const HeadSet>(patterns({"10:1.1"}), "--from a.json"));
  CHECK(taken(selection, &missing) == std::vector<HeadName>{head_at(10, 1, 1)});
  CHECK(missing ==
        std::vector<std::string>{"--pick: 2 of 4 heads are not in this capture: 9.1, 1.7"});
}

TEST_CASE("a selection that leaves no head says what there is") {
  std::vector<std::string> missing;
  const auto refusal = [&](const CallSelection& selection) {
    return thrown_text(ErrorCode::usage, [&] { taken(selection, &missing); });
  };
  CHECK(refusal(picked({"9.1"})) == "--pick: 1 of 1 head is not in this capture: 9.1");
  CallSelection both = picked({"0.1"});
  both.layers = Selection::parse("1", "--layers");
  CHECK(contains(refusal(both),
                 "the selection leaves no head: this capture has steps 0, 10, "
                 "layers 0-2, branches cond, kinds self"));
  CallSelection names;
  names.branches = {"cnd", "uncond"};
  CHECK(contains(refusal(names), "--branch cnd: not in this capture, did you mean cond?"));
  names.branches = {"cond", "uncond"};
  CHECK(taken(names, &missing).size() == all_heads().size());
  CHECK(missing == std::vector<std::string>{
                       "--branch uncond: not in this capture, did you mean cond? (it has cond)"});
  CallSelection layers;
  layers.layers = Selection::parse("last", "--layers");
  CHECK(taken(layers, &missing).size() == 8);  // none of the refiner's
}
