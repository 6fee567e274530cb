// Sessions of format 1, which are JSON, still open.
#include <functional>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/session/session.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// As the window wrote it, with nothing as it is by default.
const char* const kText = R"({
  "format": "attnscope-session/1",
  "capture": "c",
  "facts": {"grid": "2x3x4", "mask": "window:3", "cu_seqlens": "0,9,24", "score": "sigmoid",
            "as": {"layer": "17"}},
  "window": {"width": 1000, "height": 700},
  "head": {"step": 10, "layer": 3, "kind": "joint", "branch": "cond", "batch": 1, "head": 2},
  "view": {
    "rect": [0.3333333333333333, 17.1, 2.0, 21.25],
    "query": [3, 25],
    "reverse": true,
    "product": "lift",
    "pool": "mean",
    "scale": "symlog",
    "colormap": "turbo",
    "range": [-0.1, 12.7],
    "equal_axes": true,
    "order": {"rows": "yxt", "keys": "tiles:1x2x2"},
    "other_order": {"rows": "hilbert", "keys": "stored"},
    "theme": "light",
    "maximised": "query",
    "show_histogram": false,
    "atlas": {"shown": true, "metric": "entropy", "sort": "text_mass",
              "filter": "layers=0-3 temporal", "exact": true},
    "volume": {"shown": false, "mode": "emission", "threshold": 0.25, "azimuth": -12.5,
               "elevation": 60.0, "zoom": 2.0, "slice": ["y", 2]},
    "timeline": {"shown": false, "metric": "entropy", "over": "layers", "loop": false,
                 "speed": 0.5, "follow": true},
    "words": {"shown": true, "special": false, "by_mass": true, "filter": "re", "chosen": [0, 1]},
    "film": {"over": true, "mode": "contour", "opacity": 0.6, "time": "linear", "one": true,
             "loop": false, "moment": 1, "rate": 12},
    "mask": {"shown": true, "text": "blocks.npy", "block": 64,
             "edits": [{"rect": [0, 8, 2, 4], "keep": true}, {"rect": [1, 2, 0, 8], "keep": false}],
             "lost": true},
    "tracks": {"rows": "text", "keys": "mass"},
    "pins": [{"number": 2, "query": 3, "key": 20}, {"number": 8, "query": 0, "key": 1}],
    "show_frames": true,
    "split_query": 0.41
  },
  "b": {"head": {"step": 0, "layer": 1, "kind": "joint", "branch": "uncond", "batch": 0,
                 "head": 1},
        "capture": "second", "difference": "signed", "range": [-0.25, 0.25],
        "rect": [1.0, 9.0, 2.0, 10.0], "lock_cursor": false, "ranked": true}
})";

ViewState state_of_text() {
  ViewState view;
  view.head = {3, 1, 2};
  view.rect = {1.0 / 3, 17.1, 2, 21.25};
  view.query = ChosenQuery{{3, 25}};
  view.reverse = true;
  view.product = ViewProduct::lift;
  view.pool = Pool::mean;
  view.scale = ScaleKind::symlog;
  view.colormap = "turbo";
  view.range = {false, -0.1, 12.7};
  view.equal_axes = true;
  view.order = {TokenOrder::parse("yxt"), TokenOrder::parse("tiles:1x2x2")};
  view.other_order = {TokenOrder::parse("hilbert"), {}};
  view.theme = ViewTheme::light;
  view.maximised = ViewPane::query;
  view.show_histogram = false;
  view.atlas = {true, "entropy", "text_mass", "layers=0-3 temporal", true};
  view.volume = {false, VolumeMode::emission, 0.25, -12.5, 60, 2, VolumeSlice{VolumeAxis::y, 2}};
  view.timeline = {false, "entropy", CurveAxis::layers, false, 0.5, true};
  view.words = {true, false, true, "re", {0, 1}};
  view.film = {true, FilmMode::contour, 0.6f, FilmTime::linear, true, false, 1, 12};
  // Of the panes below the query the ranked rows are in front.
  view.mask = {false, "/folder/blocks.npy", 64, {{0, 8, 2, 4, true}, {1, 2, 0, 8}}, true};
  view.tracks = {RowTrack::text, KeyTrack::mass};
  view.pins.set(2, Pin{3, 20});
  view.pins.set(8, Pin{0, 1});
  view.split_query = 0.41f;
  OtherSide other{.head = {0, 0, 1}, .rect = {1, 9, 2, 10}};
  other.difference = Difference::signed_difference;
  other.lock_zoom = other.lock_cursor = false;
  other.range = {false, -0.25, 0.25};
  other.ranked = true;
  view.other = other;
  return view;
}

std::string refused(const std::string& text) {
  return thrown_text(ErrorCode::file, [&] { parse_session(text, "s.json", "/folder"); });
}

std::string changed(const std::function<void(Json&)>& change) {
  auto json = Json::parse(kText);
  change(json);
  return json.dump();
}

}  // namespace

TEST_CASE("a session of format 1 opens with the state that it had") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const auto calls = map_sources(Capture::open(folder.path()));
  const HeadPicker picker(calls);
  const ViewLimits limits = ViewLimits::of(calls);
  const SessionHeads heads{picker, picker, limits};
  const StoredSession session = parse_session(kText, "s.json", "/folder");
  CHECK(session.capture == "/folder/c");
  CHECK(session.other_capture == "/folder/second");
  CHECK(session.facts.grid == "2x3x4");
  CHECK(session.facts.mask == "window:3");
  CHECK(session.facts.cu_seqlens == "0,9,24");
  CHECK(session.facts.score == ScoreFunction::sigmoid);
  CHECK(session.facts.told.at("layer") == "17");
  CHECK(session.width == 1000);
  CHECK(session.height == 700);
  CHECK(restored_view(session, heads) == state_of_text());

  // A plain one: what it leaves out is as at first.
  const std::string plain = changed([](Json& j) {
    const Json view = j["view"];
    j.erase("b");
    j.erase("facts");
    j["view"] = {{"rect", {0, 26, 0, 26}}, {"query", nullptr},       {"reverse", false},
                 {"product", "weights"},   {"pool", "max"},          {"scale", "log"},
                 {"colormap", "viridis"},  {"range", "auto"},        {"theme", "dark"},
                 {"maximised", nullptr},   {"show_histogram", true}, {"split_query", 0.36}};
    j["head"] = {{"step", 0},          {"layer", 1}, {"kind", "joint"},
                 {"branch", "uncond"}, {"batch", 0}, {"head", 0}};
  });
  CHECK(restored_view(parse_session(plain, "s", "/"), heads) == opened_view(limits));

  // Rows are ranked where there is a side B; the range of A stays where no difference is shown.
  ViewState expected = state_of_text();
  expected.maximised = ViewPane::ranked;
  const auto with = [&](const std::function<void(Json&)>& change) {
    return restored_view(parse_session(changed(change), "s", "/folder"), heads);
  };
  CHECK(with([](Json& j) { j["view"]["maximised"] = "ranked"; }) == expected);
  expected = state_of_text();
  expected.other->difference = Difference::off;
  expected.other->range = {};
  expected.other->split = 0.3f;
  CHECK(with([](Json& j) {
          j["b"].erase("difference");
          j["b"]["split"] = 0.3;
        }) == expected);

  // The mask's pane alone, without a mask.
  const ViewState alone = with([](Json& j) {
    j.erase("b");
    j["view"]["maximised"] = "mask";
    j["view"]["mask"] = {{"shown", true}, {"text", ""}, {"block", 128}};
  });
  CHECK(alone.maximised == ViewPane::mask);
  CHECK(alone.mask == MaskLook{.shown = true});

  CHECK(with([](Json& j) { j["view"]["words"]["filter"] = "none"; }).words.filter == "none");

  // A file of an order may be called anything but an order's name.
  std::string places;
  for (int64_t token = 25; token >= 0; --token) places += std::to_string(token) + " ";
  write_bytes(folder / "perm", places);
  const auto ordered = changed([](Json& j) {
    j["view"]["order"] = {{"rows", "perm"}, {"keys", "perm"}};
  });
  const TokenOrder order =
      restored_view(parse_session(ordered, "s", folder.path()), heads).order.keys;
  CHECK(order.file == folder / "perm");
  REQUIRE(order.list);
  CHECK(order.list->front() == 25);

  const auto lost = [&](const std::function<void(Json&)>& change) {
    return usage_text([&] { with(change); });
  };
  CHECK(has(lost([](Json& j) { j["head"]["layer"] = 2; }), "s: head: layer 2: not in this"));
  CHECK(has(lost([](Json& j) { j["b"]["head"]["layer"] = 7; }), "s: b.head: layer 7"));
  CHECK(has(lost([](Json& j) { j["view"]["query"] = {26}; }), "s: view.query: token 26"));
}

TEST_CASE("what is wrong in a session of format 1 is named by file and key") {
  CHECK(has(refused("{"), "s.json: is no valid JSON"));
  CHECK(has(refused("[]"), "s.json: expected an object"));
  CHECK(has(refused(changed([](Json& j) { j["format"] = "attnscope-session/2"; })),
            "s.json: format: expected \"attnscope-session/1\", got \"attnscope-session/2\""));
  CHECK(refused(changed([](Json& j) { j["view"]["recd"] = 1; })) ==
        "s.json: view.recd: no such key, did you mean rect?");
  CHECK(refused(changed([](Json& j) { j["late"] = 1; })) == "s.json: late: no such key");
  CHECK(refused(changed([](Json& j) { j["head"].erase("layer"); })) ==
        "s.json: head.layer: is missing");
  CHECK(has(refused(changed([](Json& j) { j.erase("capture"); })), "a capture or tensors"));
  CHECK(has(refused(changed([](Json& j) { j["capture"] = 5; })), "capture: expected a text"));
  CHECK(has(refused(changed([](Json& j) { j["capture"] = ""; })), "capture: is empty"));
  const auto set = [](const char* pointer, const Json& value) {
    return changed([&](Json& j) { j[Json::json_pointer(pointer)] = value; });
  };
  const auto refuses = [&](const char* pointer, const Json& value, const std::string& part) {
    const std::string text = refused(set(pointer, value));
    INFO(text << " / " << part);
    CHECK(text.starts_with("s.json: "));
    CHECK(has(text, part));
  };
  refuses("/window/width", 10, "window.width: expected a whole number from 64");
  refuses("/window/width", 800.5, "window.width: expected a whole number");
  refuses("/window", 3, "window: expected an object");
  refuses("/head/kind", "slf", "head.kind: kind slf: no such name");
  refuses("/head/head", -1, "head.head: expected whole numbers from 0 on");
  refuses("/head/step", 18446744073709551615u, "head.step");
  refuses("/view/rect", {1, 2, 3}, "view.rect: expected 4 numbers");
  refuses("/view/rect", {2, 1, 0, 1}, "view.rect: zoom: expected Q0 < Q1");
  refuses("/view/rect", {0, 1, 0, "1"}, "view.rect: expected a number");
  refuses("/view/query", Json::array(), "view.query: expected null or a list");
  refuses("/view/query", {3, 3}, "view.query: the tokens must ascend");
  refuses("/view/query", {-3}, "view.query");
  refuses("/view/reverse", "on", "view.reverse: expected true or false");
  refuses("/view/product", "weight", "did you mean weights?");
  refuses("/view/colormap", "jet", "view.colormap: colormap jet: no such name");
  refuses("/view/range", "wide", "view.range: expected \"auto\", \"minmax\"");
  refuses("/view/range", {2, 1}, "view.range: range: the low end");
  refuses("/view/atlas/shwon", true, "view.atlas.shwon: no such key, did you mean shown?");
  refuses("/view/atlas/exact", 1, "view.atlas.exact");
  refuses("/view/volume/mode", "emision", "view.volume.mode: volume emision: no such name");
  refuses("/view/volume/slice", "z", "view.volume.slice: expected null or an axis");
  refuses("/view/tracks/rows", "lze", "did you mean lse?");
  refuses("/view/pins/0/number", 9, "view.pins.number: expected a whole number");
  refuses("/view/pins/0/query", -7, "view.pins.query");
  refuses("/view/pins/0/x", 1, "view.pins.x: no such key");
  refuses("/view/mask/block", 0, "view.mask.block");
  refuses("/view/mask/edits", 3, "view.mask.edits: expected a list");
  refuses("/view/mask/edits/0/rect", {0, 1, 3, 2}, "view.mask.edits.rect");
  refuses("/view/maximised", "nowhere", "view.maximised: pane nowhere");
  refuses("/view/split_query", 1.5, "view.split_query");
  refuses("/facts/gird", "1x1x1", "facts.gird: no such key, did you mean grid?");
  refuses("/facts/score", "max", "facts.score");
  refuses("/b/difference", "sign", "b.difference: difference sign: no such name");
  refuses("/b/split", 1.5, "b.split");
  refuses("/b/rangd", 1, "did you mean range?");
  refuses("/b/range", {2, 1}, "low end");
  refuses("/b/capture", "", "b.capture: is empty");
  CHECK(has(refused(changed([](Json& j) {
              j["b"].erase("capture");
              j["b"].erase("head");
            })),
            "b.head: is missing"));
}
