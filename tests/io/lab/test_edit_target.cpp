#include "io/lab/edit_target.h"
#include "tests/io/lab/numbers.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::lab_tests;

TEST_CASE("a target is a limit of the mean and one of the worst") {
  const EditTarget error = parse_target("output_error<=0.05");
  CHECK(error.measure == EditMeasure::output_error);
  CHECK(error.mean == 0.05);
  CHECK(error.worst == 0.05);
  CHECK(error.keeps(0.05, 0.05));
  CHECK_FALSE(error.keeps(0.04, 0.06));
  CHECK_FALSE(error.keeps(0.06, 0.05));
  const EditTarget recall = parse_target("recall_p05>=0.85  worst>=0.5");
  CHECK(recall.measure == EditMeasure::recall_p05);
  CHECK(recall.keeps(0.85, 0.5));
  CHECK_FALSE(recall.keeps(0.84, 0.84));
  CHECK_FALSE(recall.keeps(0.9, 0.49));
  CHECK(recall.text == "recall_p05>=0.85  worst>=0.5");
  CHECK(parse_target("recall>=1").worst == 1);
}

TEST_CASE("a target that cannot be meant is refused") {
  const auto says = [](const std::string& text) {
    return refusal([&] { parse_target(text, "--target"); });
  };
  CHECK(says("recal>=0.9") ==
        "--target recal>=0.9: recal: no such name, did you mean recall? (output_error, recall, "
        "recall_p05)");
  CHECK(says("recall<=0.9") ==
        "--target recall<=0.9: expected recall>=0.9, because more recall is better");
  CHECK(says("output_error>=0.1") ==
        "--target output_error>=0.1: expected output_error<=0.1, because less output_error is "
        "better");
  CHECK(says("recall>=1.5") == "--target recall>=1.5: recall is at most 1, got 1.5");
  CHECK(says("recall>=0.9 wrst>=0.8") ==
        "--target recall>=0.9 wrst>=0.8: wrst: no such name, did you mean worst? (worst)");
  CHECK(says("recall>=0.9 worst>=0.95") ==
        "--target recall>=0.9 worst>=0.95: the worst may not be held to more (0.95) than the mean "
        "(0.9)");
  for (const char* text : {"", "recall", "recall>0.9", "recall>=", "recall>=x", "recall>=nan",
                           "recall>=inf", "output_error<=-1", "recall>=0.9x", "recall>=0.9 worst",
                           "recall>=0.9 worst>=0.8 worst>=0.7"}) {
    INFO(text);
    CHECK(says(text).find("expected ") != std::string::npos);
  }
}
