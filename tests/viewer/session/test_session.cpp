#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/session/session.h"

using namespace attnscope;
using namespace attnscope::test;
using std::filesystem::path;

namespace {

/// One with nothing as it is by default.
Session unusual(const path& capture) {
  Session session;
  session.capture = capture;
  session.facts.grid = "2x3x4";
  session.facts.mask = "window:3";
  session.facts.score = ScoreFunction::sigmoid;
  session.width = 1000;
  session.height = 700;
  session.head = {10, 3, CallKind::joint, "cond", 1, 2};
  session.view.rect = {1.0 / 3, 17.1, 2, 21.25};
  session.view.query = ChosenQuery{{3, 25}};
  session.view.reverse = true;
  session.view.product = ViewProduct::lift;
  session.view.pool = Pool::mean;
  session.view.scale = ScaleKind::symlog;
  session.view.colormap = "turbo";
  session.view.range = {false, -0.1, 12.7};
  session.view.equal_axes = true;
  session.view.order = {TokenOrder::parse("yxt"), TokenOrder::parse("tiles:1x2x2")};
  session.view.other_order = {TokenOrder::parse("hilbert"), {}};
  session.view.theme = ViewTheme::light;
  session.view.maximised = ViewPane::query;
  session.view.show_histogram = false;
  session.view.atlas = {true, "entropy", "text_mass", "layers=0-3 temporal", true};
  session.view.words = {true, false, true, "re", {0, 1}};
  session.view.film = {true, FilmMode::contour, 0.6f, FilmTime::linear, true, false, 1};
  session.view.mask = {
      true, "topk:block=32,keep=0.2", 64, {{0, 8, 2, 4, true}, {1, 2, 0, 8}}, true};
  session.view.tracks = {RowTrack::text, KeyTrack::mass};
  session.view.show_frames = true;
  session.view.pins.set(2, Pin{3, 20});
  session.view.pins.set(8, Pin{0, 1});
  session.view.split_query = 0.41f;
  return session;
}

std::string refused(const std::string& text) {
  return thrown_text(ErrorCode::file, [&] { parse_session(text, "s.json", "/folder"); });
}

/// The text of a good session with a change.
std::string changed(const std::function<void(Json&)>& change) {
  auto json = Json::parse(session_text(unusual("/folder/c"), "/folder"));
  change(json);
  return json.dump();
}

}  // namespace

TEST_CASE("a session comes back as it was") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const path file = folder.path() / "session.json";
  const Session session = unusual(folder.path());
  write_session(session, file, false);
  const Session back = read_session(file);
  CHECK(back.capture == session.capture);
  CHECK(back.facts.grid == session.facts.grid);
  CHECK(back.facts.mask == session.facts.mask);
  CHECK(back.facts.score == session.facts.score);
  CHECK_FALSE(back.facts.text);
  CHECK(back.width == 1000);
  CHECK(back.height == 700);
  CHECK(back.head == session.head);
  CHECK(back.view == session.view);

  const Capture capture = Capture::open(folder.path());
  const HeadPicker picker(map_sources(capture));
  const ViewLimits limits = ViewLimits::of(map_sources(capture));
  ViewState expected = session.view;
  expected.head = {3, 1, 2};
  CHECK(restored_view(back, picker, limits) == expected);
  // The defaults too.
  Session plain;
  plain.capture = folder.path();
  plain.head = picker.values({});
  plain.view = opened_view(limits);
  write_session(plain, file, true);
  CHECK(read_session(file).view == plain.view);
  CHECK(restored_view(read_session(file), picker, limits) == plain.view);
}

TEST_CASE("where packed sequences are cut and how files are named come back too") {
  const TemporaryFolder folder;
  Session session = unusual(folder.path());
  session.facts.pattern = "L{layer}_{q|k}.npy";
  session.facts.cu_seqlens = "0,9,24";
  session.facts.told = {{"layer", "17"}, {"model", "m"}};
  session.facts.cu_seqlens_k = (folder.path() / "cuts.npz").string() + ":cu";
  const auto json = Json::parse(session_text(session, folder.path()));
  CHECK(json["facts"]["cu_seqlens"] == "0,9,24");
  CHECK(json["facts"]["cu_seqlens_k"] == "cuts.npz:cu");
  const Session back = parse_session(json.dump(), "s.json", folder.path());
  CHECK(back.facts.pattern == session.facts.pattern);
  CHECK(back.facts.cu_seqlens == session.facts.cu_seqlens);
  CHECK(json["facts"]["as"]["layer"] == "17");
  CHECK(back.facts.told == session.facts.told);
  CHECK(back.facts.cu_seqlens_k == session.facts.cu_seqlens_k);
}

TEST_CASE("paths below the session's folder are relative, so that both can be moved") {
  const TemporaryFolder folder;
  const auto stored = [&](const path& capture) {
    return Json::parse(session_text(unusual(capture), folder.path()))["capture"].get<std::string>();
  };
  CHECK(stored(folder.path() / "a" / "b") == "a/b");
  CHECK(stored(folder.path() / "a/../c/") == "c");
  CHECK(stored(folder.path()) == ".");
  CHECK(stored("/elsewhere/x") == "/elsewhere/x");
  CHECK(stored(folder.path().parent_path() / "beside") ==
        (folder.path().parent_path() / "beside").string());
  CHECK(stored("here") == (std::filesystem::current_path() / "here").string());
  const std::string text = session_text(unusual(folder.path() / "a"), folder.path());
  CHECK(parse_session(text, "s", "/moved/to").capture == path("/moved/to/a"));

  Session bare = unusual({});
  bare.tensors = {folder / "q.npy", folder / "kv.safetensors:k", ""};
  bare.facts.mask = folder / "m.npy";
  const Session back = parse_session(session_text(bare, folder.path()), "s", "/moved");
  CHECK(back.capture.empty());
  CHECK(back.tensors.q == "/moved/q.npy");
  CHECK(back.tensors.k == "/moved/kv.safetensors:k");
  CHECK(back.tensors.v.empty());
  CHECK(back.facts.mask == "/moved/m.npy");
}

TEST_CASE("a mask's file moves with the session, and is not written over by it") {
  const TemporaryFolder folder;
  write_bytes(folder / "blocks.npy", "bits");
  Session session = unusual(folder.path() / "c");
  session.view.mask = {true, folder / "blocks.npy", 32};
  const std::string text = session_text(session, folder.path());
  CHECK(Json::parse(text)["view"]["mask"]["text"] == "blocks.npy");
  CHECK(parse_session(text, "s", "/moved").view.mask == MaskLook{true, "/moved/blocks.npy", 32});
  CHECK(has(thrown_text(ErrorCode::file,
                        [&] { write_session(session, folder.path() / "blocks.npy", true); }),
            "is an input"));
}

TEST_CASE("a session file is written whole or not at all, and never over its capture") {
  const TemporaryFolder folder;
  const path file = folder.path() / "s.json";
  const path capture = folder.path() / "capture.safetensors";
  write_bytes(capture, "tensors");
  write_session(unusual(capture), file, false);
  CHECK(has(thrown_text(ErrorCode::file, [&] { write_session(unusual(capture), file, false); }),
            "already exists"));
  write_session(unusual(capture), file, true);
  CHECK(has(thrown_text(ErrorCode::file, [&] { write_session(unusual(capture), capture, true); }),
            "is an input"));
  Session bare = unusual({});
  bare.tensors = {capture.string() + ":q", capture.string() + ":k", ""};
  CHECK(has(thrown_text(ErrorCode::file, [&] { write_session(bare, capture, true); }),
            "is an input"));
  CHECK(read_bytes(capture) == "tensors");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
  CHECK(is_session_file(file));
  CHECK_FALSE(is_session_file(capture));
  CHECK_FALSE(is_session_file(folder.path()));
  CHECK_FALSE(is_session_file(folder.path() / "missing"));
  CHECK_FALSE(
      thrown_text(ErrorCode::file, [&] { read_session(folder.path() / "missing"); }).empty());
  CHECK(has(thrown_text(ErrorCode::file,
                        [&] { write_session(unusual("/a\xff"), folder.path() / "t.json", false); }),
            "UTF-8"));
}

TEST_CASE("what is wrong in a session is named by file and key") {
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
  const std::vector<std::pair<std::function<void(Json&)>, const char*>> cases{
      {[](Json& j) { j["window"]["width"] = 10; }, "window.width: expected a whole number from 64"},
      {[](Json& j) { j["window"]["width"] = 800.5; }, "window.width: expected a whole number"},
      {[](Json& j) { j["window"] = 3; }, "window: expected an object"},
      {[](Json& j) { j["head"]["kind"] = "slf"; }, "head.kind: slf: no such name, did you mean"},
      {[](Json& j) { j["head"]["head"] = -1; }, "head.head: expected whole numbers from 0 on"},
      {[](Json& j) { j["head"]["step"] = 18446744073709551615u; }, "head.step"},
      {[](Json& j) {
         j["view"]["rect"] = {1, 2, 3};
       },
       "view.rect: expected 4 numbers"},
      {[](Json& j) {
         j["view"]["rect"] = {2, 1, 0, 1};
       },
       "view.rect: expected Q0 < Q1"},
      {[](Json& j) {
         j["view"]["rect"] = {0, 1, 0, "1"};
       },
       "view.rect: expected a number"},
      {[](Json& j) { j["view"]["query"] = Json::array(); }, "view.query"},
      {[](Json& j) {
         j["view"]["query"] = {3, 3};
       },
       "view.query: the tokens must ascend"},
      {[](Json& j) { j["view"]["query"] = {-3}; }, "view.query"},
      {[](Json& j) { j["view"]["reverse"] = "on"; }, "view.reverse: expected true or false"},
      {[](Json& j) { j["view"]["product"] = "weight"; }, "did you mean weights?"},
      {[](Json& j) { j["view"]["colormap"] = "jet"; }, "view.colormap: jet: no such name"},
      {[](Json& j) { j["view"]["range"] = "wide"; }, "view.range: expected \"auto\", \"minmax\""},
      {[](Json& j) {
         j["view"]["range"] = {2, 1};
       },
       "view.range: the low end"},
      {[](Json& j) { j["view"]["atlas"]["shwon"] = true; },
       "view.atlas.shwon: no such key, did you mean shown?"},
      {[](Json& j) { j["view"]["atlas"]["exact"] = 1; }, "view.atlas.exact"},
      {[](Json& j) { j["view"]["mask"]["block"] = 0; }, "view.mask.block"},
      {[](Json& j) { j["view"]["mask"]["edits"] = 3; }, "view.mask.edits: expected a list"},
      {[](Json& j) {
         j["view"]["mask"]["edits"][0]["rect"] = {0, 1, -2, 3};
       },
       "view.mask.edits.rect"},
      {[](Json& j) { j["view"]["maximised"] = "nowhere"; }, "view.maximised: nowhere"},
      {[](Json& j) { j["view"]["split_query"] = 1.5; }, "view.split_query"},
      {[](Json& j) { j["facts"]["gird"] = "1x1x1"; },
       "facts.gird: no such key, did you mean grid?"},
      {[](Json& j) { j["facts"]["score"] = "max"; }, "facts.score"},
  };
  for (const auto& [change, part] : cases) {
    const std::string text = refused(changed(change));
    INFO(text << " / " << part);
    CHECK(text.starts_with("s.json: "));
    CHECK(has(text, part));
  }
}

TEST_CASE("what the capture does not have is not restored") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const Capture capture = Capture::open(folder.path());
  const HeadPicker picker(map_sources(capture));
  const ViewLimits limits = ViewLimits::of(map_sources(capture));
  const auto refuse = [&](const std::function<void(Session&)>& change) {
    Session session = unusual(folder.path());
    change(session);
    return usage_text([&] { restored_view(session, picker, limits); });
  };
  CHECK(has(refuse([](Session& s) { s.head.layer = 2; }), "session: layer 2: not in this capture"));
  CHECK(has(refuse([](Session& s) { s.head.head = 3; }), "session: head 3"));
  CHECK(has(refuse([](Session& s) { s.view.query = ChosenQuery{{26}}; }), "session: token 26"));
  CHECK(has(refuse([](Session& s) {
              s.view.product = ViewProduct::logits;
              s.view.scale = ScaleKind::log2;
            }),
            "session: scale log"));
  CHECK(has(refuse([](Session& s) { s.view.scale = ScaleKind::log2; }), "session: range -0.1"));
}
