#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/script/script.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

template <typename Word>
Word only(const char* line) {
  const Script script = parse_script(line, "s");
  REQUIRE(script.lines.size() == 1);
  REQUIRE(std::holds_alternative<Word>(script.lines[0].word));
  return std::get<Word>(script.lines[0].word);
}

template <typename ActionType>
ActionType only_action(const char* line) {
  const ViewState state;
  const Action action = only<word::Set>(line).change({.state = state});
  REQUIRE(std::holds_alternative<ActionType>(action));
  return std::get<ActionType>(action);
}

std::string refusal(const char* line) {
  return usage_text([&] { parse_script(line, "s"); });
}

}  // namespace

TEST_CASE("side B is chosen, shown and let go by words") {
  CHECK(only<word::OpenOther>("b capture other/dump").path == "other/dump");
  for (const char* line : {"b step 3", "b branch cond", "b kind joint", "b head 3 2",
                           "b step 3 layer 2 branch cond head 1"}) {
    CHECK(only<word::Set>(line).setting->name == "b");
  }
  CHECK(only<word::ShowOther>("b show on").on);
  CHECK_FALSE(only<word::ShowOther>("b show off").on);
  CHECK(only_action<action::SetSplitLine>("b split 0.25").share == 0.25f);
  CHECK_FALSE(only_action<action::SetSplitLine>("b split off").share);
  CHECK_FALSE(only_action<action::SetLock>("b release zoom").on);
  CHECK(only_action<action::SetLock>("b lock cursor").lock == action::Lock::cursor);
  CHECK(only_action<action::ShowRanked>("b ranked on").on);
  only_action<action::DropOther>("b off");
  CHECK(only_action<action::SetDifference>("difference logratio").how == Difference::log_ratio);
  CHECK(only_action<action::SetDifference>("difference off").how == Difference::off);
}

TEST_CASE("what cannot be meant of side B is told") {
  CHECK(has(refusal("b side 1"), "(step, layer, chunk,"));
  CHECK(has(refusal("b layer"), "expected one value"));
  CHECK(has(refusal("b layer 1 2"), "expected one value"));
  CHECK(has(refusal("b head 1 x"), "whole number"));
  CHECK(has(refusal("b off 1"), "stands alone"));
  CHECK(has(refusal("b split 1.5"), "from 0 to 1"));
  CHECK(has(refusal("b split half"), "expected a number"));
  CHECK(has(refusal("b lock zoo"), "did you mean zoom?"));
  CHECK(has(refusal("b ranked yes"), "(on, off)"));
  CHECK(has(refusal("difference sign"), "did you mean signed?"));
  CHECK(has(refusal("expect difference == sum"), "no such name"));
}
