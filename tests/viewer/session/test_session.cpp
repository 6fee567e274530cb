// Sessions of format 2: scripts of settings behind what was open.
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>

#include "io/tensors/token_order_file.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/session/session.h"
#include "viewer/view/view_actions.h"

using namespace attnscope;
using namespace attnscope::test;
using std::filesystem::path;

namespace {

/// A capture of a video, and what sessions of it need.
struct Opened {
  TemporaryFolder folder;
  std::vector<MapSource> calls = [this] {
    write_video_capture(folder);
    return map_sources(Capture::open(folder.path()));
  }();
  HeadPicker picker{calls};
  ViewLimits limits = ViewLimits::of(calls);
  SessionHeads heads{picker, picker, limits};
};

/// One with nothing as it is by default.
Session unusual(const path& capture) {
  Session session;
  session.capture = capture;
  session.facts.grid = "2x3x4";
  session.facts.mask = "window:3";
  session.facts.score = ScoreFunction::sigmoid;
  session.width = 1000;
  session.height = 700;
  session.view.head = {3, 1, 2};
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
  session.view.atlas = {true, "entropy", "text_mass", "layers=0-3 temporal", true, "3.1,12.7"};
  session.view.words = {true, false, true, "re", {0, 1}};
  session.view.film = {true, FilmMode::contour, 0.6f, FilmTime::linear, true, false, 1};
  session.view.mask = {
      true, "topk:block=32,keep=0.2", 128, {{0, 8, 2, 4, true}, {1, 2, 0, 8}}, true};
  session.view.tracks = {RowTrack::text, KeyTrack::mass};
  session.view.pins.set(2, Pin{3, 20});
  session.view.pins.set(8, Pin{0, 1});
  session.view.split_query = 0.41f;
  return session;
}

StoredSession parsed(const std::string& text, const path& folder = "/folder") {
  return parse_session(text, "s.session", folder);
}

std::string refused(const std::string& text) {
  return thrown_text(ErrorCode::file, [&] { parsed(text); });
}

}  // namespace

TEST_CASE("a session is a script of what was open and of what is not as at first") {
  const Opened opened;
  Session session;
  session.capture = opened.folder.path() / "dump";
  session.view = opened_view(opened.limits);
  CHECK(session_text(session, opened.heads, opened.folder.path()) ==
        "attnscope-session/2\nopen dump\nsize 1280 800\n"
        "step 0 layer 1 kind joint branch uncond batch 0 head 0\n");
  session = unusual("/elsewhere/a dump");
  CHECK(session_text(session, opened.heads, opened.folder.path()) ==
        R"(attnscope-session/2
open "/elsewhere/a dump" --grid 2x3x4 --mask window:3 --score sigmoid
size 1000 700
step 10 layer 3 kind joint branch cond batch 1 head 2
reverse on
query tokens 3,25
product lift
pool mean
scale symlog
colormap turbo
range -0.1 12.7
zoom 0.3333333333333333 17.1 2 21.25
aspect equal
order yxt rows
order tiles:1x2x2 keys
other-order hilbert rows
other-order stored keys
theme light
histogram off
column 0.41
atlas on
atlas entropy
atlas sort text_mass
atlas filter "layers=0-3 temporal"
atlas exact
heads select 3.1,12.7
track rows text
track keys mass
pin 2 3 20
pin 8 0 1
word 0,1
words on
words special off
words sort mass
words filter re
film contour
film opacity 0.6
film one
film frame 1
film linear
film loop off
mask on
mask topk:block=32,keep=0.2
mask keep 0 8 2 4
mask drop 1 2 0 8
mask lost on
pane query
)");
}

TEST_CASE("a session comes back as it was") {
  const Opened opened;
  const path file = opened.folder.path() / "s.session";
  const Session session = unusual(opened.folder.path());
  write_session(session, opened.heads, file, false);
  const StoredSession back = read_session(file);
  CHECK(back.capture == session.capture);
  CHECK(back.facts.grid == session.facts.grid);
  CHECK(back.facts.mask == session.facts.mask);
  CHECK(back.facts.score == session.facts.score);
  CHECK_FALSE(back.facts.text);
  CHECK(back.width == 1000);
  CHECK(back.height == 700);
  CHECK(restored_view(back, opened.heads) == session.view);
  // The defaults too.
  Session plain;
  plain.capture = opened.folder.path();
  plain.view = opened_view(opened.limits);
  write_session(plain, opened.heads, file, true);
  CHECK(restored_view(read_session(file), opened.heads) == plain.view);
}

TEST_CASE("an order from a file is kept by its name, also where the file is gone") {
  const Opened opened;
  Session session;
  session.capture = opened.folder.path();
  session.view = opened_view(opened.limits);
  TokenOrder order;
  order.kind = TokenOrder::Kind::listed;
  order.file = opened.folder / "orders/o 1.npy";
  std::vector<int64_t> places(26);
  std::iota(places.rbegin(), places.rend(), 0);
  order.list = std::make_shared<const std::vector<int64_t>>(places);
  session.view.order = {order, order};
  const std::string text = session_text(session, opened.heads, opened.folder.path());
  CHECK(has(text, "\norder \"orders/o 1.npy\"\n"));
  // It is read with the session.
  const StoredSession back = parsed(text, opened.folder.path());
  CHECK(has(thrown_text(ErrorCode::file, [&] { restored_view(back, opened.heads); }),
            "s.session:5: "));
}

TEST_CASE("an order's file is no order's name, however it is called") {
  const Opened opened;
  const path& folder = opened.folder.path();
  std::string places;
  for (int64_t token = 25; token >= 0; --token) places += std::to_string(token) + " ";
  for (const char* name : {"perm", "hilbert", "tiles:1x2x2", "o.txt"}) {
    CAPTURE(name);
    write_bytes(folder / name, places);
    const TokenOrder order = open_token_order(folder / name);
    REQUIRE(order.kind == TokenOrder::Kind::listed);
    Session session;
    session.capture = folder;
    session.view = opened_view(opened.limits);
    session.view.order = {order, order};
    const std::string text = session_text(session, opened.heads, folder);
    const bool plain = std::string(name) == "o.txt";
    CHECK(has(text, std::string("\norder ") + (plain ? "" : "./") + name + "\n"));
    const TokenOrder back = restored_view(parsed(text, folder), opened.heads).order.rows;
    CHECK(back.file == order.file);
    REQUIRE(back.list);
    CHECK(*back.list == *order.list);
  }
}

TEST_CASE("a mask that the head cannot carry stays in its session") {
  const TemporaryFolder folder;
  // The second call has fewer tokens, and the third has no weights to keep.
  std::vector<MapSource> calls(3);
  for (MapSource& call : calls) {
    call.layer = &call - calls.data();
    call.batch = {0};
    call.branches = {"cond"};
    call.heads = {0, 1};
    const int64_t frames = call.layer == 1 ? 1 : 4;
    call.queries = call.keys = TokenGrid::video(frames * 6, {frames, 2, 3}, 0, TextPlace::start);
  }
  calls[2].weights = false;
  const HeadPicker picker(calls);
  const ViewLimits limits = ViewLimits::of(calls);
  const SessionHeads heads{picker, picker, limits};
  const auto act = [&](const ViewState& state, const Action& action) {
    return apply_action(state, action, limits);
  };
  const MaskLook mask{true, "window:4", 128, {{0, 24, 8, 24, false}, {0, 2, 0, 2, true}}};
  for (const int64_t layer : {1, 2}) {
    CAPTURE(layer);
    Session session;
    session.capture = folder.path();
    session.view = opened_view(limits);
    for (size_t edits = 0; edits <= mask.edits.size(); ++edits) {
      MaskLook look = mask;
      look.edits.resize(edits);
      session.view = act(session.view, action::SetMask{look});
    }
    session.view = act(session.view, action::SelectHead{{layer, 0, 1}});
    REQUIRE(session.view.mask == mask);
    const std::string text = session_text(session, heads, folder.path());
    CHECK(restored_view(parsed(text, folder.path()), heads) == session.view);
    // By hand it is refused, but its pane can be closed.
    MaskLook look = mask;
    look.edits.push_back({0, 24, 0, 24, true});
    CHECK_FALSE(usage_text([&] { act(session.view, action::SetMask{look}); }).empty());
    look = mask;
    look.shown = false;
    CHECK(act(session.view, action::SetMask{look}).mask == look);
  }
}

TEST_CASE("a session names its heads also where some calls alone recorded a step and a layer") {
  const auto call_of = [](int64_t step, int64_t layer, bool recorded) {
    MapSource call;
    call.step = step;
    call.layer = layer;
    call.batch = {0};
    call.branches = {"cond"};
    call.heads = {0, 1};
    call.queries = call.keys = TokenGrid::video(24, {4, 2, 3}, 0, TextPlace::start);
    call.place.unrecorded = {!recorded, !recorded, !recorded};
    return call;
  };
  const std::vector<MapSource> calls{call_of(5, 3, true), call_of(0, 0, false)};
  const HeadPicker picker(calls);
  const ViewLimits limits = ViewLimits::of(calls);
  const SessionHeads heads{picker, picker, limits};
  Session session;
  session.capture = "/dump";
  for (const int64_t call : {0, 1}) {
    CAPTURE(call);
    session.view = apply_action(opened_view(limits), action::SelectHead{{call, 0, 1}}, limits);
    session.view = apply_action(session.view, action::SetOther{{1 - call, 0, 1}}, limits);
    const std::string text = session_text(session, heads, "/");
    CHECK(restored_view(parsed(text, "/"), heads) == session.view);
  }
  // Two calls of one name cannot be told apart, which is said.
  const std::vector<MapSource> twins{call_of(0, 0, false), call_of(0, 0, false)};
  const HeadPicker same(twins);
  const ViewLimits same_limits = ViewLimits::of(twins);
  session.view = opened_view(same_limits);
  session.view.head = {1, 0, 1};
  CHECK(has(thrown_text(ErrorCode::file,
                        [&] {
                          session_text(session, {same, same, same_limits}, "/");
                        }),
            "no recorded values tell this head from others"));
}

TEST_CASE("what dragging does over the matrix is in no session") {
  const Opened opened;
  Session session;
  session.capture = opened.folder.path();
  session.view = opened_view(opened.limits);
  session.view.mask.brush = MaskBrush::drop;
  const std::string text = session_text(session, opened.heads, opened.folder.path());
  CHECK_FALSE(has(text, "mask"));
}

TEST_CASE("a session brings side B and its capture back") {
  const Opened opened;
  Session session;
  session.capture = opened.folder.path();
  session.other_capture = opened.folder.path() / "second";
  session.view = opened_view(opened.limits);
  OtherSide other{.head = {3, 1, 2}, .rect = {1, 9, 2, 10}};
  other.difference = Difference::signed_difference;
  other.lock_zoom = other.lock_cursor = false;
  other.range = {false, -0.25, 0.25};
  other.ranked = true;
  session.view.other = other;
  session.view.maximised = ViewPane::ranked;
  const std::string text = session_text(session, opened.heads, opened.folder.path());
  CHECK(has(text, "b capture second\n"));
  CHECK(has(text, "b step 10 layer 3 kind joint branch cond batch 1 head 2\n"));
  CHECK(has(text, "difference signed\nrange -0.25 0.25\n"));
  const StoredSession back = parsed(text, opened.folder.path());
  CHECK(back.other_capture == opened.folder.path() / "second");
  CHECK(restored_view(back, opened.heads) == session.view);
}

TEST_CASE("all that was told of the input comes back") {
  const Opened opened;
  Session session = unusual(opened.folder.path());
  session.facts.pattern = "L{layer}_{q|k}.npy";
  session.facts.cu_seqlens = "0,9,24";
  session.facts.told = {{"layer", "17"}, {"model", "my model"}};
  session.facts.cu_seqlens_k = (opened.folder.path() / "cuts.npz").string() + ":cu";
  const std::string text = session_text(session, opened.heads, opened.folder.path());
  CHECK(has(text, " --cu-seqlens-k cuts.npz:cu --as layer=17 --as \"model=my model\""));
  const StoredSession back = parsed(text, opened.folder.path());
  CHECK(back.facts.pattern == session.facts.pattern);
  CHECK(back.facts.cu_seqlens == session.facts.cu_seqlens);
  CHECK(back.facts.told == session.facts.told);
  CHECK(back.facts.cu_seqlens_k == session.facts.cu_seqlens_k);
}

TEST_CASE("paths below the session's folder are relative, so that both can be moved") {
  const Opened opened;
  const path& folder = opened.folder.path();
  const auto stored = [&](const path& capture) {
    Session session;
    session.capture = capture;
    session.view = opened_view(opened.limits);
    const std::string text = session_text(session, opened.heads, folder);
    const size_t begin = text.find("open ") + 5;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(stored(folder / "a" / "b") == "a/b");
  CHECK(stored(folder / "a/../c/") == "c");
  CHECK(stored(folder) == ".");
  CHECK(stored(folder / "--x") == "./--x");
  CHECK(stored("/elsewhere/x") == "/elsewhere/x");
  CHECK(stored(folder.parent_path() / "beside") == (folder.parent_path() / "beside").string());
  CHECK(stored("here") == (std::filesystem::current_path() / "here").string());
  const std::string text = session_text(unusual(folder / "a"), opened.heads, folder);
  CHECK(parsed(text, "/moved/to").capture == path("/moved/to/a"));

  Session bare = unusual({});
  bare.tensors = {opened.folder / "q.npy", opened.folder / "kv.safetensors:k", ""};
  bare.facts.mask = opened.folder / "m.npy";
  bare.view.mask = {true, opened.folder / "blocks.npy", 32};
  const StoredSession back = parsed(session_text(bare, opened.heads, folder), "/moved");
  CHECK(back.capture.empty());
  CHECK(back.tensors.q == "/moved/q.npy");
  CHECK(back.tensors.k == "/moved/kv.safetensors:k");
  CHECK(back.tensors.v.empty());
  CHECK(back.facts.mask == "/moved/m.npy");
  CHECK(restored_view(back, opened.heads).mask == MaskLook{true, "/moved/blocks.npy", 32});
  // On another machine files have the names that they have there.
  Session far = bare;
  far.tensors = {};
  far.capture = "ssh://server/data/dump";
  const StoredSession there = parsed(session_text(far, opened.heads, folder), "/moved");
  CHECK(there.capture == path("ssh://server/data/dump"));
  CHECK(there.facts.mask == opened.folder / "m.npy");
  CHECK(restored_view(there, opened.heads).mask.text == opened.folder / "blocks.npy");
}

TEST_CASE("a session file is written whole or not at all, and never over its inputs") {
  const Opened opened;
  const TemporaryFolder folder;
  const path file = folder.path() / "s.session", capture = folder.path() / "c.safetensors";
  write_bytes(capture, "tensors");
  const auto write = [&](const Session& session, const path& to, bool force) {
    write_session(session, opened.heads, to, force);
  };
  const auto refuse = [&](const Session& session, const path& to, bool force) {
    return thrown_text(ErrorCode::file, [&] { write(session, to, force); });
  };
  write(unusual(capture), file, false);
  CHECK(has(refuse(unusual(capture), file, false), "already exists"));
  write(unusual(capture), file, true);
  CHECK(has(refuse(unusual(capture), capture, true), "is an input"));
  Session bare = unusual({});
  bare.tensors = {capture.string() + ":q", capture.string() + ":k", ""};
  CHECK(has(refuse(bare, capture, true), "is an input"));
  Session masked = unusual(capture);
  write_bytes(folder / "blocks.npy", "bits");
  masked.view.mask = {true, folder / "blocks.npy", 32};
  CHECK(has(refuse(masked, folder.path() / "blocks.npy", true), "is an input"));
  CHECK(read_bytes(capture) == "tensors");
  CHECK(is_session_file(file));
  CHECK_FALSE(is_session_file(capture));
  CHECK_FALSE(is_session_file(folder.path()));
  CHECK_FALSE(is_session_file(folder.path() / "missing"));
  CHECK_FALSE(
      thrown_text(ErrorCode::file, [&] { read_session(folder.path() / "missing"); }).empty());
  CHECK(has(refuse(unusual("/a\nquit"), folder.path() / "t.session", false), "line break"));
  Session broken = unusual(capture);
  broken.view.segment = "a\nb";
  CHECK(has(refuse(broken, folder.path() / "t.session", false), "line break"));
  broken = unusual(capture);
  broken.view.words.filter = "a\nb";
  CHECK(has(refuse(broken, folder.path() / "t.session", false), "line break"));
  write_bytes(folder / "notes", "\n# of a talk\n  # two\nattnscope-session/2\nopen c\n");
  CHECK(is_session_file(folder.path() / "notes"));
  write_bytes(folder / "notes", "# attnscope-session/2\nopen c\n");
  CHECK_FALSE(is_session_file(folder.path() / "notes"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "t.session"));
}

TEST_CASE("what is wrong in a session is named by file and line") {
  const std::string head = "attnscope-session/2\n# a comment\nopen dump\n";
  CHECK(parsed(head).capture == path("/folder/dump"));
  CHECK(refused("attnscope-session/3\nopen dump\n") ==
        "s.session:1: expected attnscope-session/2, got attnscope-session/3");
  CHECK(refused("") == "s.session: is empty");
  CHECK(refused("attnscope-session/2\n") == "s.session: open is missing");
  CHECK(has(refused("attnscope-session/2\nreverse on\n"),
            "s.session:2: reverse: a session says first what is to be opened"));
  CHECK(refused(head + "product weight\n") ==
        "s.session:4: product weight: no such name, did you mean weights? (weights, logits, lift)");
  CHECK(has(refused(head + "zoom 2 1 0 1\n"), "s.session:4: zoom: expected Q0 < Q1 and K0 < K1"));
  CHECK(has(refused(head + "query tokens 0-9223372036854775807\n"), "expected N,N-M..."));
  CHECK(has(refused(head + "query tokens 0-9000000,0-9000000\n"), "at most 16777216"));
  CHECK(has(refused(head + "query tokens x\n"), "s.session:4: query tokens: expected N,N-M..."));
  CHECK(has(refused(head + "revers on\n"), "did you mean reverse?"));
  CHECK(has(refused(head + "open other\n"), "open: stands once"));
  CHECK(has(refused(head + "size 10 800\n"), "size: expected 64 to 16384 pixels, got 10"));
  CHECK(has(refused(head + "word \"a\n"), "s.session:4: the closing quote is missing"));
  const auto open = [](const std::string& words) {
    return refused("attnscope-session/2\nopen " + words + "\n");
  };
  CHECK(has(open("a b"), "s.session:2: open: expected one capture, got two"));
  CHECK(has(open("a --gird 1x1x1"), "--gird: no such name, did you mean --grid?"));
  CHECK(has(open("a --grid"), "--grid: its value is missing"));
  CHECK(has(open("a --q q.npy"), "either a capture or tensors"));
  CHECK(has(open("--q q.npy"), "either a capture or tensors"));
  CHECK(has(open("a --score max"), "--score max: no such name"));
  CHECK(has(open("a --as layer"), "--as: expected NAME=VALUE"));
  CHECK(has(open("\"\""), "the capture's name is empty"));
}

TEST_CASE("a session does nothing but show") {
  for (const char* line : {"shot x.png",
                           "save-session x",
                           "save-mask x.npy",
                           "wait exact",
                           "quit",
                           "film x.gif",
                           "film play",
                           "film x/",
                           "key F12",
                           "type x",
                           "click Toolbar/Fit",
                           "hover x",
                           "drag x 0 0 1 1",
                           "wheel x 1",
                           "play on",
                           "probe 0 0",
                           "print frames",
                           "expect frames > 0",
                           "b show on",
                           "pin 3",
                           "unpin 3",
                           "fit"}) {
    CAPTURE(line);
    CHECK(has(refused("attnscope-session/2\nopen dump\n" + std::string(line) + "\n"),
              "s.session:3: "));
  }
}

TEST_CASE("what the capture does not have is not restored") {
  const Opened opened;
  const auto refuse = [&](const std::string& lines) {
    const StoredSession session = parsed("attnscope-session/2\nopen dump\n" + lines + "\n");
    return usage_text([&] { restored_view(session, opened.heads); });
  };
  CHECK(refuse("layer 2") == "s.session:3: layer 2: not in this capture (it has 1, 3)");
  CHECK(has(refuse("head 3"), "s.session:3: head 3"));
  CHECK(has(refuse("reverse on\nquery token 26"), "s.session:4: token 26"));
  CHECK(has(refuse("product logits\nscale log"), "s.session:4: scale log"));
  CHECK(has(refuse("range -0.1 1"), "s.session:3: range -0.1"));
  CHECK(has(refuse("b layer 7"), "s.session:3: layer 7"));
}
