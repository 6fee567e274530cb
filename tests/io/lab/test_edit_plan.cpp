#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "io/lab/edit_plan.h"
#include "tests/io/lab/numbers.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::lab_tests;

namespace {

EditPlan sample_plan() {
  PlanScope some;
  some.steps = {{0, 9}};
  some.layers = {3};
  some.kind = "self";
  some.block = "blocks.3";
  some.slot = "attn1";
  some.heads = {0, 2};
  some.edit = "sol:tau=1";
  some.tiles = 0.25;
  some.promised = {0.03, 0.05, 8};
  some.found = TargetNumbers{0.04, 0.07, 2};
  some.queries = 1024;
  some.keys = 1040;
  PlanScope rest;
  rest.kind = "self";
  rest.edit = "vsa:keep=0.1";
  rest.tiles = 0.1;
  rest.promised = {0.01, 0.01, 10};
  rest.queries = rest.keys = 1024;
  return {
      "moving-shapes", "00ff", "output_error<=0.05 worst<=0.1", {"sol:tau=1", "vsa:keep=0.1"}, 2,
      {some, rest}};
}

/// The refusal of the sample's text after a change of its JSON.
std::string refusal_of(const std::function<void(OrderedJson&)>& change) {
  OrderedJson json = OrderedJson::parse(edit_plan_text(sample_plan()));
  change(json);
  return refusal([&] { parse_edit_plan(json.dump(), "p.json"); });
}

}  // namespace

TEST_CASE("a plan is read as it was written") {
  const EditPlan plan = sample_plan();
  const std::string text = edit_plan_text(plan);
  CHECK(parse_edit_plan(text, "p.json") == plan);
  EditPlan empty = plan;
  empty.scopes.clear();
  CHECK(parse_edit_plan(edit_plan_text(empty), "p.json") == empty);
  const OrderedJson json = OrderedJson::parse(text);
  CHECK(json["format"] == "attnscope-edits/1");
  CHECK(json["note"].get<std::string>().find("proxy") != std::string::npos);
  CHECK(json["scopes"][1]["heads"].is_null());
  CHECK(json["scopes"][1]["found"].is_null());

  const test::TemporaryFolder folder;
  const auto file = std::filesystem::path(folder / "p.json");
  std::ofstream(file) << text;
  CHECK(read_edit_plan(file) == plan);
  CHECK(refusal([&] { read_edit_plan(folder / "none.json"); }) != "");
}

TEST_CASE("the first scope that holds a head has its edit") {
  const EditPlan plan = sample_plan();
  HeadName head = name_at({9, 3, 2});
  CHECK(scope_of(plan, head) == &plan.scopes[0]);
  head.step = 10;
  CHECK(scope_of(plan, head) == &plan.scopes[1]);
  head = name_at({9, 3, 1});
  CHECK(scope_of(plan, head) == &plan.scopes[1]);
  head = name_at({9, 3, 2});
  head.place.slot = "attn2";
  CHECK(scope_of(plan, head) == &plan.scopes[1]);
  head.kind = "joint";
  CHECK(scope_of(plan, head) == nullptr);
}

TEST_CASE("a plan for calls of another size is refused") {
  const EditPlan plan = sample_plan();
  const HeadName head = name_at({1, 3, 2});
  CHECK_NOTHROW(check_shapes(plan, head, 1024, 1040, "p.json"));
  CHECK(refusal([&] { check_shapes(plan, head, 2048, 1040, "p.json"); }) ==
        "p.json: scopes[0] (steps 0-9 layer 3 blocks.3 attn1 self heads 0, 2): was chosen for 1024 "
        "queries and 1040 keys, but step 1 layer 3 blocks.3.attn1 cond self batch 0 head 2 has "
        "2048 and 1040: choose anew from a capture of this size");
  CHECK(refusal([&] { check_shapes(plan, head, 1024, 1, "p.json"); }) != "");
  EditPlan dense = plan;
  dense.scopes[0].edit = "dense";
  CHECK_NOTHROW(check_shapes(dense, head, 5, 5, "p.json"));
  HeadName cross = head;
  cross.kind = "cross";
  CHECK_NOTHROW(check_shapes(plan, cross, 5, 5, "p.json"));
}

TEST_CASE("a file that is no plan is refused with place, expectation and find") {
  const auto scope = [](const char* name, const OrderedJson& value) {
    return refusal_of([&](OrderedJson& json) { json["scopes"][0][name] = value; });
  };
  CHECK(refusal_of([](OrderedJson& json) { json["format"] = "attnscope-edits/2"; }) ==
        "p.json: format: expected \"attnscope-edits/1\", got \"attnscope-edits/2\"");
  CHECK(refusal_of([](OrderedJson& json) { json.erase("format"); }) ==
        "p.json: format: expected \"attnscope-edits/1\", got null or nothing");
  CHECK(refusal_of([](OrderedJson& json) {
          json = {1, 2};
        }).find("expected an object") != std::string::npos);
  CHECK(refusal_of([](OrderedJson& json) { json["scope"] = 1; }) ==
        "p.json: scope: is no member of this format, did you mean scopes?");
  CHECK(refusal_of([](OrderedJson& json) { json.erase("among"); }) == "p.json: among: is missing");
  CHECK(refusal_of([](OrderedJson& json) {
          json["target"] = "recall<=1";
        }).starts_with("p.json: target: target recall<=1: expected recall>=1"));
  CHECK(refusal_of([](OrderedJson& json) { json["among"][1] = 3; }) ==
        "p.json: among[1]: expected an edit, got 3");
  CHECK(refusal_of([](OrderedJson& json) { json["hold_out"] = -1; }) ==
        "p.json: hold_out: expected a whole number, at least 0, got -1");
  CHECK(refusal_of([](OrderedJson& json) { json["scopes"] = 1; }) ==
        "p.json: scopes: expected a list, got 1");
  CHECK(refusal_of([](OrderedJson& json) { json["scopes"][1].erase("heads"); }) ==
        "p.json: scopes[1].heads: is missing");
  CHECK(scope("head", 1) ==
        "p.json: scopes[0].head: is no member of this format, did you mean heads?");
  CHECK(scope("kind", "slef") ==
        "p.json: scopes[0].kind: expected self, cross or joint, got \"slef\"");
  CHECK(scope("edit", "sol:tau=2") ==
        "p.json: scopes[0].edit: expected dense or one of \"among\", got \"sol:tau=2\"");
  CHECK(scope("tiles", 1.5) == "p.json: scopes[0].tiles: expected a number from 0 to 1, got 1.5");
  CHECK(scope("steps", {3}) == "p.json: scopes[0].steps: expected null or [first, last], got [3]");
  CHECK(scope("steps", {3, 1}) ==
        "p.json: scopes[0].steps: expected the first step first, got [3,1]");
  CHECK(scope("heads", OrderedJson::array()) ==
        "p.json: scopes[0].heads: expected null or a list of numbers, got []");
  CHECK(scope("layers", {2, 2}) ==
        "p.json: scopes[0].layers: expected ascending numbers, got [2,2]");
  CHECK(scope("layers", {0.5}) ==
        "p.json: scopes[0].layers: expected a whole number, at least 0, got 0.5");
  CHECK(scope("queries", 0).find("at least 1, got 0") != std::string::npos);
  CHECK(scope("keys", uint64_t{1} << 63).find("got 9223372036854775808") != std::string::npos);
  CHECK(scope("slot", 1) == "p.json: scopes[0].slot: expected a text, got 1");
  CHECK(scope("promised", nullptr).starts_with("p.json: scopes[0].promised: expected an object"));
  CHECK(scope("found", {{"mean", 1}}) == "p.json: scopes[0].found.worst: is missing");
  CHECK(scope("found", {{"mean", "x"}, {"worst", 1}, {"forwards", 1}}) ==
        "p.json: scopes[0].found.mean: expected a number, at least 0, got \"x\"");
  CHECK(scope("found", {{"mean", 1}, {"worst", 1}, {"forwards", 0}})
            .starts_with("p.json: scopes[0].found.forwards: expected a whole number"));
  for (const char* text : {"", "{", "nul", R"({"format":1,"format":2})", "\xff"}) {
    INFO(text);
    CHECK(refusal([&] { parse_edit_plan(text, "p.json"); }).starts_with("p.json: "));
  }
}
