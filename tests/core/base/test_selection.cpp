#include "core/base/selection.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using attnscope::test::refused;

namespace {

using Values = std::vector<int64_t>;

Values resolve(const std::string& text, const Values& recorded) {
  return Selection::parse(text, "--layers").resolve(recorded);
}

Values upto(int64_t count) { return Selection().resolve_count(count); }

}  // namespace

TEST_CASE("the selection grammar") {
  const Values eight = upto(8);
  struct Case {
    std::string text;
    Values expected;
  };
  const std::vector<Case> cases{{"all", eight},
                                {"3", {3}},
                                {"0,3-5", {0, 3, 4, 5}},
                                {"6-", {6, 7}},
                                {"last", {7}},
                                {"!4", {0, 1, 2, 3, 5, 6, 7}},
                                {"!last", {0, 1, 2, 3, 4, 5, 6}},
                                {"!1-6", {0, 7}},
                                {"0-7:5", {0, 5}},
                                {"1-7:3", {1, 4, 7}},
                                {":3", {0, 3, 6}},
                                {"all:3", {0, 3, 6}},
                                {"2-:3", {2, 5}},
                                {"5,1,5,1-2", {1, 2, 5}},
                                {"!3,2-4", {2, 4}},
                                {"2-4,!3", {2, 4}},
                                {" 1 , 3-4 ", {1, 3, 4}},
                                {"all,3", eight},
                                {"3-3", {3}},
                                {"!0-7:2", {1, 3, 5, 7}}};
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(resolve(c.text, eight) == c.expected);
  }
}

TEST_CASE("selections work on the recorded values, not on positions") {
  const Values steps{2, 10, 18};
  CHECK(resolve("10", steps) == Values{10});
  CHECK(resolve("2-10", steps) == Values{2, 10});
  CHECK(resolve("3-18", steps) == Values{10, 18});
  CHECK(resolve("5-", steps) == Values{10, 18});
  CHECK(resolve("last", steps) == Values{18});
  CHECK(resolve("!10", steps) == Values{2, 18});
  // Counted from the smallest recorded value.
  CHECK(resolve(":16", steps) == Values{2, 18});
  CHECK(resolve("10-18:4", steps) == Values{10, 18});
  CHECK(Selection().resolve(steps) == steps);
  CHECK(Selection().is_all());
  CHECK(Selection::parse("all", "--steps").is_all());
  CHECK_FALSE(Selection::parse("!1", "--steps").is_all());
  CHECK(Selection::parse("0-3", "--steps").text() == "0-3");
}

TEST_CASE("selections that cannot be read name the option, the text and the part") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "empty part"},
      {"1,,2", "empty part"},
      {"1,", "empty part"},
      {"!", "'!'"},
      {"x", "'x'"},
      {"3x", "'x' in '3x'"},
      {"3-7x", "'x' in '3-7x'"},
      {"-", "'-'"},
      {"-1", "'-1': numbers are not negative; the largest is last"},
      {"-5:2", "'-5:2'"},
      {"7-3", "'7-3' runs backwards"},
      {"3:", "step"},
      {"3-5:0", "step"},
      {"3:2", "a step needs a range"},
      {"3-5:x", "step"},
      {"last-3", "'last-3'"},
      {"allx", "'x' in 'allx'"},
      {"3--5", "'3--5'"},
      {"99999999999999999999", "'99999999999999999999'"},
      {"!!3", "'!!3'"},
      {"1;2", "';2' in '1;2'"},
      {"0-3:2:2", "':2' in '0-3:2:2'"}};
  for (const auto& [text, part] : cases) {
    INFO(text);
    const std::string shown = text.empty() ? "''" : text;
    CHECK(refused([&, &text = text] { Selection::parse(text, "--heads"); }, ErrorCode::usage,
                  {"--heads " + shown + ": ", part, "0,3-7"}) == "");
  }
}

TEST_CASE("what a selection names and does not exist is left out, and told") {
  const Values steps{2, 10, 18};
  struct Case {
    std::string text;
    Values left;
    std::vector<std::string> told;
  };
  const std::vector<Case> cases{{"2,3", {2}, {"3 does not exist"}},
                                {"!3", steps, {"3 does not exist"}},
                                {"0-10", {2, 10}, {"0 in '0-10' is out of range"}},
                                {"2-19", steps, {"19 in '2-19' is out of range"}},
                                {"10-40:8", {10, 18}, {"40 in '10-40:8' is out of range"}},
                                {"18,3-9", {18}, {"'3-9' holds nothing"}},
                                {"!11-12", steps, {"'!11-12' holds nothing"}},
                                {"10,5,30", {10}, {"5 does not exist", "30 does not exist"}},
                                {"2-18", steps, {}},
                                {"all", steps, {}}};
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(resolve(c.text, steps) == c.left);
    std::vector<std::string> lines;
    for (const std::string& told : c.told) {
      lines.push_back("--layers " + c.text + ": " + told + " (there are 2, 10, 18)");
    }
    CHECK(Selection::parse(c.text, "--layers").missing(steps) == lines);
  }
}

TEST_CASE("selections that leave nothing name what exists") {
  const Values steps{2, 10, 18};
  const std::vector<std::pair<std::string, std::string>> cases{{"3", "3 does not exist"},
                                                               {"19", "19 does not exist"},
                                                               {"19-", "19 in '19-'"},
                                                               {"3-9", "'3-9' holds nothing"},
                                                               {"3-9:2", "'3-9:2' holds nothing"},
                                                               {"!2-18", "nothing is left"},
                                                               {"!all", "nothing is left"},
                                                               {"2,!2", "nothing is left"}};
  for (const auto& [text, part] : cases) {
    INFO(text);
    CHECK(refused([&, &text = text] { resolve(text, steps); }, ErrorCode::usage,
                  {"--layers " + text + ": ", part, "2, 10, 18"}) == "");
  }
  CHECK(refused([] { resolve("4-9", upto(4)); }, ErrorCode::usage, {"there are 0-3"}) == "");
  CHECK(refused([] { resolve("all", {}); }, ErrorCode::usage, {"nothing exists"}) == "");
  CHECK(refused([] { Selection().resolve_count(0); }, ErrorCode::usage, {"nothing exists"}) == "");
}

TEST_CASE("crops are half-open and never clipped") {
  CHECK(parse_crop(":", "--rows", 10) == IndexRange{0, 10});
  CHECK(parse_crop("2:", "--rows", 10) == IndexRange{2, 10});
  CHECK(parse_crop(":3", "--rows", 10) == IndexRange{0, 3});
  CHECK(parse_crop("2:10", "--rows", 10) == IndexRange{2, 10});
  for (const std::string text :
       {"", "5", "5:5", "6:5", "0:11", "10:", "11:", "-1:3", "a:b", "1:2:3", "1:2x", ":0",
        "99999999999999999999:", "0:99999999999999999999"}) {
    INFO(text);
    CHECK(refused([&] { parse_crop(text, "--cols", 10); }, ErrorCode::usage,
                  {"--cols " + text + ": ", "0:10"}) == "");
  }
}

TEST_CASE("lists of indices are shortened for messages") {
  CHECK(format_index_list(Values{}) == "none");
  CHECK(format_index_list(Values{4}) == "4");
  CHECK(format_index_list(Values{0, 1, 2, 3, 7, 9, 10}) == "0-3, 7, 9-10");
  CHECK(format_index_list(Values{0, 2, 4, 6}, 3) == "0, 2, 4, …");
  CHECK(format_index_list(Values{0, 2, 4}, 3) == "0, 2, 4");
}
