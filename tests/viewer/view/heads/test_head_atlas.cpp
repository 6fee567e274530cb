// Which heads stand in the atlas, in which order, and which the filter lets through.
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/session/session.h"
#include "viewer/view/heads/atlas_filter.h"
#include "viewer/view/heads/head_atlas.h"
#include "viewer/view/view_actions.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

MapSource call(int64_t step, int64_t layer, std::string slot, std::vector<std::string> branches,
               int64_t heads = 2) {
  MapSource source;
  source.step = step;
  source.layer = layer;
  source.place = {"blocks." + std::to_string(layer), std::move(slot)};
  source.branches = std::move(branches);
  for (size_t i = 0; i < source.branches.size(); ++i) {
    source.batch.push_back(static_cast<int64_t>(i));
  }
  for (int64_t h = 0; h < heads; ++h) source.heads.push_back(h);
  return source;
}

std::shared_ptr<const HeadSketch> sketch(double entropy, HeadClass head_class) {
  auto made = std::make_shared<HeadSketch>();
  made->numbers.assign(head_fields().size(), std::nan(""));
  made->numbers[static_cast<size_t>(find_head_field("entropy") - head_fields().data())] = entropy;
  made->head_class = head_class;
  return made;
}

std::string shape(const AtlasCells& cells) {
  std::string text;
  for (const AtlasLine& line : cells.lines) {
    text += line.label + ":";
    for (const AtlasHead& head : line.heads) {
      if (head.shown)
        text += " " + std::to_string(head.name.layer) + "." + std::to_string(head.name.head);
      if (!head.shown) text += " -";
    }
    text += "\n";
  }
  return text;
}

std::string refused(const std::string& filter) {
  return thrown_text(ErrorCode::usage, [&] { AtlasFilter::parse(filter); });
}

}  // namespace

TEST_CASE("the atlas has the calls of a step, kind, slot and branch, by layer") {
  const std::vector<MapSource> calls{
      call(0, 3, "attn1", {"uncond", "cond"}), call(0, 1, "attn1", {"uncond", "cond"}),
      call(0, 1, "attn2", {"uncond", "cond"}), call(10, 1, "attn1", {"uncond", "cond"}),
      call(0, kNoLayer, "attn1", {"cond"}),    call(0, 2, "attn1", {"uncond"})};
  const auto lines = atlas_lines(calls, {0, 1, 0});
  REQUIRE(lines.size() == 3);
  // A call outside the main stack is called by its block.
  CHECK(lines[0].label == "blocks.-1");
  CHECK(lines[1].label == "1");
  CHECK(lines[2].label == "3");
  CHECK(lines[1].heads[1].id == HeadId{1, 1, 1});
  CHECK(lines[1].heads[1].name == HeadName{0, 1, "cond", "self", 1, 1, {"blocks.1", "attn1"}});
  CHECK(lines[0].heads[0].id == HeadId{4, 0, 0});

  std::vector<MapSource> stream{call(0, 0, "attn1", {"all"}), call(0, 0, "attn1", {"all"})};
  stream[1].place.chunk = 1;
  CHECK(atlas_lines(stream, {0, 0, 0}).size() == 1);
}

TEST_CASE("the atlas is filtered and sorted by numbers, which come later") {
  const std::vector<MapSource> calls{call(0, 0, "", {"all"}), call(0, 1, "", {"all"})};
  std::map<HeadId, std::shared_ptr<const HeadSketch>> known{
      {{0, 0, 1}, sketch(2, HeadClass::text)}, {{1, 0, 0}, sketch(5, HeadClass::temporal)}};
  const FindSketch find = [&](const HeadId& id) { return known[id]; };
  AtlasLook look;
  look.shown = true;
  const auto cells = [&] { return AtlasCells::of(atlas_lines(calls, {}), look, find); };
  CHECK(shape(cells()) == "0: 0.0 0.1\n1: 1.0 1.1\n");
  CHECK(cells().heads == 4);
  CHECK(cells().sketched == 2);
  look.metric = "entropy";
  CHECK(cells().range == std::pair(2.0, 5.0));
  look.sort = "entropy";
  CHECK(shape(cells()) == ": 1.0 0.1 0.0 1.1\n");
  look.filter = "temporal";
  CHECK(shape(cells()) == ": 1.0\n");
  look.sort = "";
  CHECK(shape(cells()) == "1: 1.0 -\n");
  look.filter = "heads=0";
  CHECK(shape(cells()) == "0: 0.0 -\n1: 1.0 -\n");
  look.filter = "entropy>=5 layers=1";
  CHECK(shape(cells()) == "1: 1.0 -\n");
  look.filter = "entropy<5";
  CHECK(shape(cells()) == "0: - 0.1\n");
  look.filter = "class=text,temporal";
  CHECK(cells().shown == 2);
  look.filter = "layers=0 (text or entropy>9) branch=all";
  CHECK(shape(cells()) == "0: - 0.1\n");
  // Heads without a number are not on the other side of it.
  look.filter = "not entropy<3";
  CHECK(shape(cells()) == "1: 1.0 -\n");
  look.filter = "layer=1 head!=0";
  CHECK(shape(cells()) == "1: - 1.1\n");
  // A layer that is not there is told, and nothing is hidden for it.
  look.filter = "layers=7";
  CHECK(cells().problem.find("layers=") != std::string::npos);
  CHECK(cells().shown == 4);
  look.filter = "layers=1 heads=9";
  CHECK(cells().problem.find("heads=") != std::string::npos);
  CHECK(cells().shown == 4);
  known[{0, 0, 0}] = sketch(std::nan(""), HeadClass::undefined);
  look.filter = "entropy<1e9";
  CHECK(cells().shown == 2);
}

TEST_CASE("what a filter cannot mean is refused by its word") {
  CHECK(refused("temporal entorpy<3")
            .find("atlas filter: \"entorpy<3\": no such number, did you mean entropy?") !=
        std::string::npos);
  CHECK(refused("entropy<").find("a value is missing") != std::string::npos);
  CHECK(refused("entropy<nan").find("expected a number") != std::string::npos);
  CHECK(refused("class=sharp").find("the classes are sink, text") != std::string::npos);
  CHECK(refused("sharp").find("expected NAME=VALUE") != std::string::npos);
  // All of a list must hold, whatever stands before it.
  CHECK(refused("not layers=0").find("lists stand before a condition") != std::string::npos);
  CHECK(refused("temporal or heads=0").find("lists stand before") != std::string::npos);
  CHECK(refused("(temporal").find("the bracket is not closed") != std::string::npos);
  CHECK(refused("layers=x").find("layers=") != std::string::npos);
  CHECK(AtlasFilter::parse("  ").matches({}, nullptr));
}

TEST_CASE("the atlas is shown, hidden and maximised by actions that check their names") {
  const ViewLimits limits{{{8, 8, 1, 1}}};
  ViewState state = opened_view(limits);
  CHECK_FALSE(state.atlas.shown);
  state = apply_action(state, action::Maximise{ViewPane::atlas}, limits);
  CHECK(state.atlas.shown);
  AtlasLook look = state.atlas;
  look.metric = "entropy";
  look.sort = "text_mass";
  look.filter = "temporal";
  state = apply_action(state, action::SetAtlas{look}, limits);
  CHECK(state.atlas == look);
  CHECK(state.maximised == ViewPane::atlas);
  look.shown = false;
  CHECK_FALSE(apply_action(state, action::SetAtlas{look}, limits).maximised);
  look.metric = "entropie";
  CHECK(thrown_text(ErrorCode::usage, [&] {
          apply_action(state, action::SetAtlas{look}, limits);
        }).find("did you mean entropy?") != std::string::npos);
  look.metric = "";
  look.filter = "nothing";
  CHECK(!thrown_text(ErrorCode::usage, [&] {
           apply_action(state, action::SetAtlas{look}, limits);
         }).empty());
}

TEST_CASE("a head of the atlas says what it is") {
  const AtlasHead head{{}, {0, 12, "", "", 0, 3}};
  CHECK(atlas_text(head, nullptr) == "layer 12 \u00b7 head 3");
  const std::string text = atlas_text(head, sketch(2.25, HeadClass::local).get());
  CHECK(text.find("head 3 \u00b7 local\nentropy 2.2") != std::string::npos);
}

TEST_CASE("a line of the atlas has no label where nobody recorded the layer") {
  std::vector<MapSource> calls{call(0, 0, "attn1", {"all"})};
  CHECK(atlas_text(atlas_lines(calls, {})[0].heads[1], nullptr) == "layer 0 · head 1");
  calls[0].place.unrecorded.layer = true;
  const auto lines = atlas_lines(calls, {});
  CHECK(lines[0].label.empty());
  CHECK(atlas_text(lines[0].heads[1], nullptr) == "head 1");
}
