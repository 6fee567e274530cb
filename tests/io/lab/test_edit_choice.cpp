#include "io/lab/edit_choice.h"
#include "tests/io/lab/numbers.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::lab_tests;

namespace {

EditPlan choose(const std::vector<EditNumbers>& rows, EditScope per = EditScope::head,
                int64_t hold_out = 0, const std::string& target = "output_error<=0.1") {
  return choose_edits(rows, parse_target(target), per, hold_out);
}

/// A head in steps 0, 1, … under two edits: a cheap one with these errors, and one that has none.
std::vector<EditNumbers> cheap_and_safe(const std::vector<double>& errors, int64_t head = 0) {
  std::vector<EditNumbers> rows;
  for (int64_t step = 0; step < static_cast<int64_t>(errors.size()); ++step) {
    rows.push_back(row({step, 0, head}, "cheap", 0.2, errors[static_cast<size_t>(step)]));
    rows.push_back(row({step, 0, head}, "safe", 0.6, 0.01));
  }
  return rows;
}

}  // namespace

TEST_CASE("the cheapest edit that keeps the target is chosen") {
  const EditPlan plan = choose(cheap_and_safe({0.05, 0.1}));
  REQUIRE(plan.scopes.size() == 1);
  const PlanScope& scope = plan.scopes.front();
  CHECK(scope.edit == "cheap");
  CHECK(scope.tiles == 0.2);
  CHECK(scope.promised.mean == Approx(0.075));
  CHECK(scope.promised.worst == 0.1);
  CHECK(scope.promised.forwards == 2);
  CHECK_FALSE(scope.found);
  CHECK(scope.queries == 64);
  CHECK_FALSE(scope.steps);
  CHECK(scope.describe() == "layer 0 blocks.0 attn1 self head 0");
  CHECK(plan.among == std::vector<std::string>{"cheap", "safe"});
  CHECK(plan.target == "output_error<=0.1");
}

TEST_CASE("the worst forward decides as well as the mean") {
  const auto rows = cheap_and_safe({0.0, 0.12});
  CHECK(choose(rows).scopes[0].edit == "safe");
  CHECK(choose(rows, EditScope::head, 0, "output_error<=0.1 worst<=0.12").scopes[0].edit ==
        "cheap");
  CHECK(choose(rows, EditScope::head, 0, "output_error<=0.05 worst<=0.12").scopes[0].edit ==
        "safe");
}

TEST_CASE("a head that no edit fits stays dense") {
  const EditPlan plan = choose({row({}, "cheap", 0.2, 0.5), row({}, "safe", 0.6, 0.2)});
  CHECK(plan.scopes[0].edit == "dense");
  CHECK(plan.scopes[0].tiles == 1);
  CHECK(plan.scopes[0].promised == TargetNumbers{0, 0, 1});
  const EditPlan recall =
      choose({row({}, "cheap", 0.2, {}, 0.5)}, EditScope::head, 0, "recall>=0.9");
  CHECK(recall.scopes[0].promised == TargetNumbers{1, 1, 1});
}

TEST_CASE("an edit that visits as much as dense attention is not chosen") {
  CHECK(choose({row({}, "sol:tau=1", 1, 0.05)}).scopes[0].edit == "dense");
  // Of a causal map a kernel visits half.
  const std::vector<EditNumbers> causal{row({}, "none", 0.5, {}, {}),
                                        row({}, "sol:tau=1", 0.6, 0.05)};
  const EditPlan plan = choose(causal);
  CHECK(plan.scopes[0].edit == "dense");
  CHECK(plan.scopes[0].tiles == 0.5);
}

TEST_CASE("of two that visit as much the better is chosen, then the first") {
  const std::vector<EditNumbers> rows{row({}, "a", 0.3, 0.05, 0.9), row({}, "b", 0.3, 0.04, 0.8),
                                      row({}, "c", 0.3, 0.04, 0.9)};
  CHECK(choose(rows).scopes[0].edit == "b");
  CHECK(choose(rows, EditScope::head, 0, "recall>=0.5").scopes[0].edit == "a");
}

TEST_CASE("scopes are heads, layers, models or steps") {
  std::vector<EditNumbers> rows;
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < 3; ++head) {
      const double error = layer == 1 && head == 1 ? 0.3 : 0.05;
      rows.push_back(row({0, layer, head}, "cheap", 0.2, error));
      rows.push_back(row({0, layer, head}, "safe", 0.6, 0.01));
    }
  }
  const auto edits = [&](EditScope per) {
    std::string text;
    for (const PlanScope& scope : choose(rows, per).scopes) {
      text += scope.describe() + ": " + scope.edit + "\n";
    }
    return text;
  };
  CHECK(edits(EditScope::head) ==
        "layer 0 blocks.0 attn1 self heads 0, 1, 2: cheap\n"
        "layer 1 blocks.1 attn1 self heads 0, 2: cheap\n"
        "layer 1 blocks.1 attn1 self head 1: safe\n");
  CHECK(edits(EditScope::layer) ==
        "layer 0 blocks.0 attn1 self: cheap\nlayer 1 blocks.1 attn1 self: safe\n");
  CHECK(edits(EditScope::model) == "attn1 self: safe\n");
  CHECK(edits(EditScope::step) ==
        "steps 0-0 layer 0 blocks.0 attn1 self heads 0, 1, 2: cheap\n"
        "steps 0-0 layer 1 blocks.1 attn1 self heads 0, 2: cheap\n"
        "steps 0-0 layer 1 blocks.1 attn1 self head 1: safe\n");
  CHECK(choose(rows, EditScope::layer).scopes[1].promised.forwards == 1);
  CHECK(parse_edit_scope("step") == EditScope::step);
  CHECK(refusal([] { parse_edit_scope("heads"); }) ==
        "--per heads: no such name, did you mean head? (head, layer, model, step)");
}

TEST_CASE("a refiner outside the main stack is chosen for by itself, and found first") {
  EditNumbers outside = row({}, "cheap", 0.2, 0.9);
  outside.head.layer = kNoLayer;
  outside.head.place.block = "refiner.0";
  outside.queries = outside.keys = 16;
  const EditPlan plan = choose({row({}, "cheap", 0.2, 0.05), outside}, EditScope::model);
  REQUIRE(plan.scopes.size() == 2);
  CHECK(scope_of(plan, outside.head)->edit == "dense");
  CHECK(scope_of(plan, name_at({3, 7, 1}))->edit == "cheap");
  HeadName cross = name_at({});
  cross.kind = "cross";
  CHECK(scope_of(plan, cross) == nullptr);
}

TEST_CASE("neighbouring steps with one choice are a range") {
  // Measured are steps 0, 10, 20, 30.
  std::vector<EditNumbers> rows = cheap_and_safe({0.3, 0.05, 0.08, 0.3});
  for (const EditNumbers& other : cheap_and_safe({0.3, 0.05, 0.08, 0.05}, 1)) rows.push_back(other);
  for (EditNumbers& each : rows) each.head.step *= 10;
  const EditPlan plan = choose(rows, EditScope::step);
  std::string text;
  for (const PlanScope& scope : plan.scopes) text += scope.describe() + ": " + scope.edit + "\n";
  CHECK(text ==
        "steps 0-0 layer 0 blocks.0 attn1 self heads 0, 1: safe\n"
        "steps 10-20 layer 0 blocks.0 attn1 self head 0: cheap\n"
        "steps 30-30 layer 0 blocks.0 attn1 self head 0: safe\n"
        "steps 10-30 layer 0 blocks.0 attn1 self head 1: cheap\n");
  CHECK(plan.scopes[1].promised.forwards == 2);
  CHECK(plan.scopes[1].promised.mean == Approx(0.065));
  CHECK(plan.scopes[1].promised.worst == 0.08);
  CHECK(scope_of(plan, name_at({15, 0, 0}))->edit == "cheap");
  CHECK(scope_of(plan, name_at({5, 0, 0})) == nullptr);
  rows.front().head.place.unrecorded.step = true;
  CHECK(refusal([&] {
          choose(rows, EditScope::step);
        }).ends_with("nobody recorded its step: choose per head"));
}

TEST_CASE("forwards that are held out are not looked at, and what is found there is told") {
  // Steps 1 and 3 of four are held out.
  const EditPlan plan = choose(cheap_and_safe({0.02, 0.4, 0.06, 0.6}), EditScope::head, 2);
  const PlanScope& scope = plan.scopes.front();
  CHECK(plan.hold_out == 2);
  CHECK(scope.edit == "cheap");
  CHECK(scope.promised.mean == Approx(0.04));
  CHECK(scope.promised.worst == 0.06);
  CHECK(scope.promised.forwards == 2);
  REQUIRE(scope.found);
  CHECK(scope.found->mean == Approx(0.5));
  CHECK(scope.found->worst == 0.6);
  CHECK(scope.found->forwards == 2);
  CHECK(choose(cheap_and_safe({0.02, 0.4, 0.06, 0.6})).scopes[0].edit == "safe");
  CHECK(refusal([] {
          choose(cheap_and_safe({0.1, 0.1}), EditScope::head, 2);
        }) ==
        "hold out 2: step 0 layer 0 blocks.0.attn1 cond self batch 0 head 0 was measured in 2 "
        "forwards (a step of a branch and batch item), of which one has to be left to choose by: "
        "hold out 1 at most");
  CHECK(refusal([] {
          choose(cheap_and_safe({0.1, 0.1}), EditScope::head, -1);
        }) == "hold out -1: expected at least 0");
}

TEST_CASE("rows of several captures are forwards of their own") {
  std::vector<EditNumbers> rows = cheap_and_safe({0.05});
  std::vector<EditNumbers> second = cheap_and_safe({0.2});
  rows.insert(rows.end(), second.begin(), second.end());
  CHECK(refusal([&] { choose(rows); }) ==
        "step 0 layer 0 blocks.0.attn1 cond self batch 0 head 0: is measured twice under cheap: "
        "name the captures of rows");
  for (size_t i = 0; i < rows.size(); ++i) rows[i].capture = i < 2 ? "cats" : "dogs";
  const EditPlan plan = choose(rows);
  CHECK(plan.scopes[0].edit == "safe");
  CHECK(plan.scopes[0].promised.forwards == 2);
  CHECK(choose(rows, EditScope::head, 1).scopes[0].found->forwards == 1);
}

TEST_CASE("rows that cannot be compared are refused by name") {
  const std::string head = "step 0 layer 0 blocks.0.attn1 cond self batch 0 head 0";
  CHECK(refusal([&] { choose({row({}, "sol", 0.2, {})}); }) ==
        head +
            ": choosing by output_error needs it of every row, and sol has none here (a call "
            "without V has no output): choose by recall");
  CHECK(refusal([&] {
          choose({row({}, "sol", 0.2, 0.1, {})}, EditScope::head, 0, "recall_p05>=0.5");
        }) == head + ": choosing by recall_p05 needs it of every row, and sol has none here");
  CHECK(choose({row({}, "sol", 0.2, {})}, EditScope::head, 0, "recall>=0.5").scopes[0].edit ==
        "sol");
  CHECK(refusal([&] {
          choose({row({}, "a", 0.2, 0.1), row({1}, "b", 0.2, 0.1)});
        }) ==
        "step 1 layer 0 blocks.0.attn1 cond self batch 0 head 0: is not measured under a, as "
        "others of its scope are");
  EditNumbers larger = row({1}, "a", 0.2, 0.1);
  larger.keys = 65;
  CHECK(refusal([&] {
          choose({row({}, "a", 0.2, 0.1), larger});
        }).find("64 and 64") != std::string::npos);
  CHECK(refusal([&] { choose({row({}, "a", 1.5, 0.1)}); }).find("expected 0 to 1") !=
        std::string::npos);
  CHECK(refusal([&] { choose({row({}, "a", NAN, 0.1)}); }) != "");
  CHECK(refusal([&] { choose({row({}, "a", 0.5, NAN)}); }) != "");
  CHECK(refusal([] { choose({}); }) == "no edit of any head was measured: nothing to choose from");
}
