#include <limits>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "tests/support/helpers.h"
#include "viewer/commands/command_actions.h"
#include "viewer/session/view_link.h"
#include "viewer/view/maps/map_source.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

MapSource call_of(int64_t step, int64_t layer) {
  MapSource call;
  call.name = "call";
  call.step = step;
  call.layer = layer;
  call.branches = {"cond"};
  call.batch = {0};
  call.heads = {0, 1};
  call.queries = call.keys = TokenGrid::video(28, {4, 2, 3}, 4, TextPlace::start);
  return call;
}

struct Opened {
  std::vector<MapSource> calls{call_of(5, 3), call_of(5, 12)};
  HeadPicker picker{calls};
  ViewLimits limits = ViewLimits::of(calls);
  ViewState state = opened_view(limits);

  Opened() { state = apply_action(state, action::SelectHead{{1, 0, 1}}, limits); }
  Session session() const {
    Session session;
    session.capture = "/data/my dump";
    session.view = state;
    return session;
  }
  std::string link() const {
    return view_command(session(), picker, state.head, TokenNames::of(calls[1], 0, false));
  }
  void run(CommandId command) {
    const auto action = command_action(command, state, picker);
    REQUIRE(action);
    state = apply_action(state, *action, limits);
  }
};

}  // namespace

TEST_CASE("a view is told as a command that shows it again") {
  Opened opened;
  CHECK(opened.link() == "attnscope view '/data/my dump' --steps 5 --layers 12 --heads 1");
  opened.state = apply_action(opened.state, action::PickQuery{{{4}}}, opened.limits);
  opened.state = apply_action(opened.state, action::SetReverse{true}, opened.limits);
  opened.state = apply_action(opened.state, action::SetRect{{4.5, 16, 0, 12}}, opened.limits);
  CHECK(opened.link() ==
        "attnscope view '/data/my dump' --steps 5 --layers 12 --heads 1 --query 0,0,0 --reverse "
        "--zoom 4,16,0,12");
  CHECK(export_command(opened.session(), opened.picker, opened.state.head) ==
        "attnscope export '/data/my dump' --steps 5 --layers 12 --heads 1 --rows 4:16 --cols 0:12 "
        "-o step5_layer12_head1.h5");
  opened.state =
      apply_action(opened.state, action::SetOrder{TokenOrder::parse("yxt")}, opened.limits);
  CHECK(contains(opened.link(), "--reverse --order yxt --zoom"));
  opened.state =
      apply_action(opened.state, action::SetOrder{{}, action::MapSide::rows}, opened.limits);
  CHECK(contains(opened.link(), "--reverse --order stored --order-keys yxt --zoom"));
  Session bare = opened.session();
  bare.capture.clear();
  bare.tensors = {"q.npy", "k.npy", ""};
  bare.facts.grid = "4x2x3";
  CHECK(view_command(bare, opened.picker, opened.state.head,
                     TokenNames::of(opened.calls[1], 0, false))
            .starts_with("attnscope view --q q.npy --k k.npy --grid 4x2x3 --steps 5"));
}

TEST_CASE("copied commands choose the heads that are selected, in the step that is seen") {
  Opened opened;
  const auto select = [&](const std::string& list) {
    opened.state = apply_action(opened.state, action::SetAtlas{{.shown = true, .selected = list}},
                                opened.limits);
  };
  select("3.1,12.0");
  const auto options = [&](const HeadPicker& picker) {
    return heads_options(opened.state.atlas.selected, picker, {1, 0, 1});
  };
  CHECK(options(opened.picker) == "--pick 3.1,12.0");
  CHECK(export_command(opened.session(), opened.picker, opened.state.head) ==
        "attnscope export '/data/my dump' --pick 3.1,12.0 -o heads.h5");
  CHECK(stats_command(opened.session(), opened.picker, opened.state.head) ==
        "attnscope stats '/data/my dump' --pick 3.1,12.0");
  Session there = opened.session();
  there.capture = "ssh://me@server/data/dump";
  CHECK(stats_command(there, opened.picker, opened.state.head) ==
        "ssh me@server 'attnscope stats /data/dump --pick 3.1,12.0'");
  // Of several steps and branches those that are seen, but where heads say their step.
  std::vector<MapSource> more{call_of(5, 3), call_of(5, 12), call_of(10, 3)};
  for (MapSource& call : more) {
    call.branches = {"uncond", "cond"};
    call.batch = {0, 1};
  }
  const HeadPicker several(more);
  CHECK(options(several).starts_with("--steps 5 --pick 3.1,12.0 --branch uncond"));
  select("3.1,10:3.0");
  CHECK(options(several).starts_with("--pick 5:3.1,10:3.0 --branch uncond"));
  select("refiner.a(b)/attn.1");
  CHECK(options(opened.picker) == "--pick 'refiner.a(b)/attn.1'");
  // Of a selection that is not seen nothing is copied.
  opened.state.atlas.shown = false;
  CHECK(contains(stats_command(opened.session(), opened.picker, opened.state.head),
                 "--layers 12 --heads 1"));
  CHECK_FALSE(usage_text([&] { select("3.1,"); }).find("heads select") == std::string::npos);
}

TEST_CASE("a command that is pasted leads where the one that was copied was") {
  Opened opened;
  opened.state = apply_action(opened.state, action::PickQuery{{{4}}}, opened.limits);
  opened.state = apply_action(opened.state, action::SetReverse{true}, opened.limits);
  opened.state = apply_action(opened.state, action::SetRect{{4, 16, 0, 12}}, opened.limits);
  opened.state =
      apply_action(opened.state, action::SetOrder{TokenOrder::parse("yxt")}, opened.limits);
  const MapRect whole{0, 28, 0, 30};
  const auto told = read_view_command(opened.link(), whole);
  REQUIRE(told);
  CHECK(told->input == "/data/my dump");
  CHECK(told->lines == std::vector<std::string>{"reverse on", "layer 12", "step 5", "head 1",
                                                "order yxt", "query 0 0 0", "zoom 4 16 0 12"});
  const auto lines = [&](const std::string& text) { return read_view_command(text, whole)->lines; };
  const std::string there = "attnscope stats \"/a b\" --pick 3.1 --branch " + shell_quoted("x y");
  CHECK(lines("ssh -p 3 me@server " + shell_quoted(there)) ==
        std::vector<std::string>{"branch \"x y\"", "heads select 3.1"});
  CHECK(lines("/usr/bin/attnscope export dump --layers 3 --rows 4:16 -o x.h5") ==
        std::vector<std::string>{"layer 3", "zoom 4 16 0 30"});
  CHECK(lines("attnscope view --q q.npy --k k.npy --grid 4x2x3 --index=7 --quiet") ==
        std::vector<std::string>{"reverse off", "query token 7"});
  CHECK(lines("attnscope view a b --query 5,0:3,10:12").back() == "query 5 0:3 10:12");
  CHECK(read_view_command("attnscope view a b", whole)->second == "b");
  CHECK_FALSE(read_view_command("L2 H0; q it's", whole));
  CHECK_FALSE(read_view_command("attnscope info dump", whole));
  const auto refused = [&](const std::string& text) { return usage_text([&] { lines(text); }); };
  CHECK(contains(refused("attnscope view d --where 'entropy<2'"), "--where: the place of a"));
  CHECK(contains(refused("attnscope view d --query 1 --query 2"), "--query: is there twice"));
  CHECK(contains(refused("attnscope view d --layers"), "--layers: its value is missing"));
  CHECK(contains(refused("attnscope view 'd"), "a quote does not end"));
}

TEST_CASE("words of a shell are quoted where they have to be") {
  CHECK(shell_quoted("dump/a-1_2.h5") == "dump/a-1_2.h5");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("$HOME") == "'$HOME'");
}

TEST_CASE("an entry is told with its head, its tokens and all of its digits") {
  ProbedEntry entry;
  entry.query = 7;
  entry.key = 9;
  entry.weight = 0.123456789;
  entry.logit = -1.5;
  CHECK(entry_text(entry, "step 5", "q → k") ==
        "step 5: q → k, row 7, column 9, weight 0.123456789, logit -1.5");
  entry.logit = std::numeric_limits<double>::quiet_NaN();
  CHECK(entry_text(entry, "h", "p") == "h: p, row 7, column 9, weight 0.123456789");
}

TEST_CASE("an entry that was copied is read again, whatever words its prompt has") {
  ProbedEntry entry;
  entry.query = 7;
  entry.key = 9;
  entry.weight = 0.5;
  const auto told = read_entry_text(
      entry_text(entry, "step 5 \u00b7 head 1", "q text 3 «: q, row 1, column 2» \u2192 k(0,1,2)"));
  REQUIRE(told);
  CHECK(told->head == "step 5 \u00b7 head 1");
  CHECK(told->query == 7);
  CHECK(told->key == 9);
  for (const char* none : {"", "L2 H0; q 3,5,6", "h: q 1, row 2", "h: q 1, row 2, column",
                           "h: q 1, row x, column 3", ", row 1, column 2"}) {
    INFO(none);
    CHECK_FALSE(read_entry_text(none));
  }
}

TEST_CASE("the view snaps to the frames in its middle") {
  Opened opened;
  opened.state = apply_action(opened.state, action::SetRect{{12, 17, 20, 26}}, opened.limits);
  opened.run(CommandId::frame_block);
  // Row 14.5 is in frame 1, column 23 in frame 3; frames have 6 tokens behind 4 of text.
  CHECK(opened.state.rect == MapRect{10, 16, 22, 28});
}

TEST_CASE("quadrants come in turn, and all of the map last") {
  Opened opened;
  const MapRect all = opened.state.rect;
  std::vector<MapRect> seen;
  for (int i = 0; i < 5; ++i) {
    opened.run(CommandId::next_quadrant);
    seen.push_back(opened.state.rect);
  }
  CHECK(seen[0] == MapRect{0, 4, 0, 4});
  CHECK(seen[1] == clamped_rect({0, 4, 4, 28}, 28, 28));
  CHECK(seen[2] == clamped_rect({4, 28, 0, 4}, 28, 28));
  CHECK(seen[3] == MapRect{4, 28, 4, 28});
  CHECK(seen[4] == all);
}

TEST_CASE("copied commands tell the facts that were told") {
  const Opened opened;
  Session session = opened.session();
  session.facts.told = {{"layer", "17"}, {"model", "my model"}};
  CHECK(view_command(session, opened.picker, opened.state.head,
                     TokenNames::of(opened.calls[1], 0, false)) ==
        "attnscope view '/data/my dump' --as layer=17 --as 'model=my model' --steps 5 --layers 12 "
        "--heads 1");
}

TEST_CASE("an export of a call that nobody placed is chosen as 0 and named by its head") {
  MapSource call = call_of(0, 0);
  call.place.unrecorded = {true, true, true};
  const HeadPicker picker(std::vector<MapSource>{call});
  Session session;
  session.capture = "u.pt";
  session.view = opened_view(ViewLimits::of(picker.calls()));
  CHECK(export_command(session, picker, {0, 0, 1}) ==
        "attnscope export u.pt --steps 0 --layers 0 --heads 1 -o head1.h5");
}
