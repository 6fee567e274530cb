// The heads that are selected together: a list as --pick takes it, whose words come and go.
#include <algorithm>

#include "core/problem/head_choice.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/heads/head_list.h"
#include "viewer/view/heads/head_selection.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

MapSource call(int64_t step, int64_t layer, std::string block, std::string slot = "") {
  MapSource source;
  source.step = step;
  source.layer = layer;
  source.place = {std::move(block), std::move(slot)};
  source.branches = {"cond"};
  source.batch = {0};
  source.heads = {0, 1, 2};
  return source;
}

std::string picks(const std::vector<AtlasLine>& lines) {
  std::string text;
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) text += head.pick + " ";
  }
  return text;
}

/// The heads of these lines that a command takes with this list.
std::vector<HeadId> taken(const std::string& list, const std::vector<AtlasLine>& lines) {
  CallSelection selection{Selection::parse("all", ""),
                          Selection::parse("all", ""),
                          Selection::parse("all", ""),
                          Selection::parse("all", ""),
                          {},
                          {}};
  selection.sets.push_back(
      std::make_shared<const HeadSet>(parse_head_list(list, "--pick"), "--pick"));
  HeadChoice choice(selection, "this capture");
  std::vector<HeadId> heads;
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) choice.add(head.name);
  }
  choice.resolve();
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) {
      if (choice.takes(head.name)) heads.push_back(head.id);
    }
  }
  return heads;
}

}  // namespace

TEST_CASE("a head is named by its layer, and where that is not its own by its block") {
  const std::vector<MapSource> calls{call(0, 0, "double.0"), call(0, 0, "single.0"),
                                     call(0, 1, "double.1"), call(0, kNoLayer, "refiner.0")};
  CHECK(picks(atlas_lines(calls, {})) ==
        "refiner.0.0 refiner.0.1 refiner.0.2 double.0.0 double.0.1 double.0.2 single.0.0 "
        "single.0.1 single.0.2 1.0 1.1 1.2 ");
  const std::vector<MapSource> slots{call(0, kNoLayer, "refiner.0", "attn")};
  CHECK(picks(atlas_lines(slots, {})) == "refiner.0/attn.0 refiner.0/attn.1 refiner.0/attn.2 ");
  // What a list cannot say is not said: a name with its comma or colon, one that would be a layer,
  // and a head without any.
  const std::vector<MapSource> unsaid{call(0, kNoLayer, "a,b"), call(0, kNoLayer, ""),
                                      call(0, kNoLayer, "a:b"), call(0, kNoLayer, "3")};
  CHECK(picks(atlas_lines(unsaid, {})) == std::string(12, ' '));
  // A command finds by each name the very head that has it.
  const auto lines = atlas_lines(calls, {});
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) {
      INFO(head.pick);
      CHECK(taken(head.pick, lines) == std::vector<HeadId>{head.id});
    }
  }
}

TEST_CASE("heads come to a selection and go from it; those of other steps keep their words") {
  const std::vector<MapSource> calls{call(0, 0, ""), call(0, 1, "")};
  const auto lines = atlas_lines(calls, {});
  const std::vector<AtlasHead>& first = lines[0].heads;
  const auto changed = [&](const std::string& list, std::vector<AtlasHead> heads, SelectHow how) {
    return changed_selection(list, heads, how);
  };
  CHECK(changed("", {first[1]}, SelectHow::toggle) == "0.1");
  CHECK(changed("0.1", {first[1]}, SelectHow::toggle).empty());
  CHECK(changed("0.1", {first[0], first[1]}, SelectHow::toggle) == "0.1,0.0");
  CHECK(changed("0.1,1.2", {first[0], first[1]}, SelectHow::add) == "0.1,1.2,0.0");
  CHECK(changed("0.1,1.2", {first[0]}, SelectHow::replace) == "0.0");
  CHECK(changed("0.1", {}, SelectHow::replace).empty());
  CHECK(changed("20:0.1,0:0.1,7.7", {first[1]}, SelectHow::toggle) == "20:0.1,7.7");
  CHECK(changed("20:0.1", {first[1]}, SelectHow::add) == "20:0.1,0.1");
}

TEST_CASE("a list that cannot be read is refused with the word that is wrong") {
  CHECK(parse_head_list("", "x").empty());
  CHECK(parse_head_list("3.1,10:12.7,refiner.0/attn.1", "x").size() == 3);
  for (const char* const list : {",", "3.1,", "3", "3.1,,4.1", "3.x", "x:3.1", "3.-1"}) {
    INFO(list);
    CHECK(has(usage_text([&] { parse_head_list(list, "heads select"); }), "heads select"));
  }
}

TEST_CASE("commands choose a selection in the step that is seen, or each head in its own") {
  CHECK(picked_heads("3.1,4.0", 10).pick == "3.1,4.0");
  CHECK_FALSE(picked_heads("3.1,4.0", 10).steps);
  CHECK(picked_heads("3.1,20:4.0", 10).pick == "10:3.1,20:4.0");
  CHECK(picked_heads("3.1,20:4.0", 10).steps);
}

TEST_CASE("the atlas marks the heads of a list, and tells those that are not among them") {
  const std::vector<MapSource> calls{call(0, 0, "b"), call(0, 1, ""), call(10, 0, "")};
  AtlasLook look;
  look.shown = true;
  look.selected = "0.1,1.2,9.9,10:0.0";
  look.filter = "heads=1";
  for (const char* const sort : {"", "entropy"}) {
    look.sort = sort;
    const AtlasCells cells =
        AtlasCells::of(atlas_lines(calls, {}), look, [](const HeadId&) { return nullptr; });
    CHECK(cells.selected == 2);
    CHECK(cells.selected_elsewhere ==
          "heads select: 2 of 4 heads are not in this step: 9.9, 10:0.0");
    for (const AtlasLine& line : cells.lines) {
      for (const AtlasHead& head : line.heads) {
        CHECK(head.selected == (head.pick == "0.1" || head.pick == "1.2"));
      }
    }
  }
  // As a file lists them: by all that is known of those that are there.
  const auto listed = listed_heads(look.selected, calls, {});
  REQUIRE(listed.size() == 4);
  CHECK(listed[0].facts() == "head 1 step 0 layer 0 batch 0 branch 4:cond kind 4:self block 1:b");
  CHECK(listed[2].facts() == "head 9 layer 9");
  CHECK(listed[3].facts() == "head 0 step 10 layer 0 batch 0 branch 4:cond kind 4:self");
}

TEST_CASE("a head that is named twice is one, and has its branch in its own step") {
  CHECK(parse_head_list("3.1,3.1,10:3.1,3.1", "x").size() == 2);
  CHECK(picked_heads("3.1,10:3.1,4.0", 10).pick == "10:3.1,10:4.0");
  std::vector<MapSource> calls{call(0, 0, ""), call(10, 0, "")};
  for (MapSource& each : calls) {
    each.branches = {"uncond", "cond"};
    each.batch = {0, 1};
  }
  const auto listed = listed_heads("0.1,0:0.1,10:0.1,20:0.1", calls, {0, 1, 0});
  REQUIRE(listed.size() == 3);
  CHECK(listed[0].facts() == "head 1 step 0 layer 0 batch 1 branch 4:cond kind 4:self");
  CHECK(listed[1].facts() == "head 1 step 10 layer 0 batch 1 branch 4:cond kind 4:self");
  CHECK(listed[2].facts() == "head 1 step 20 layer 0");
}
