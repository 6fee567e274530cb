#include <set>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/script/script.h"
#include "viewer/script/script_values.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/view_actions.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

template <typename Word>
Word word_of(const char* line) {
  const ScriptWord word = parse_script_line(line);
  INFO(line);
  REQUIRE(std::holds_alternative<Word>(word));
  return std::get<Word>(word);
}

/// The action of a setting's line, where nothing is open.
template <typename Did>
Did action_of(const char* line, const ViewState& state = {}) {
  const Action action = word_of<word::Set>(line).change({.state = state});
  INFO(line);
  REQUIRE(std::holds_alternative<Did>(action));
  return std::get<Did>(action);
}

/// The state of a map of a video, with a prompt of four words, after lines of settings.
ViewState after(std::initializer_list<const char*> lines) {
  MapSource call;
  call.name = "call";
  call.step = 10;
  call.layer = 3;
  call.branches = {"cond"};
  call.batch = {0};
  call.heads = {0, 1, 2};
  call.queries = call.keys = TokenGrid::video(16, {2, 2, 3}, 4, TextPlace::start);
  call.tokens = {{"a", "red", "circle", "[PAD]"}};
  const HeadPicker picker({call});
  const ViewLimits limits = ViewLimits::of(picker.calls());
  ViewState state = opened_view(limits);
  for (const char* line : lines) {
    INFO(line);
    state = apply_action(
        state,
        word_of<word::Set>(line).change({.state = state, .picker = &picker, .others = &picker}),
        limits);
  }
  return state;
}

std::string refused(const std::string& line) {
  INFO(line);
  const std::string text = usage_text([&] { parse_script("\n" + line, "a.script"); });
  CHECK(text.starts_with("a.script:2: "));
  return text;
}

}  // namespace

TEST_CASE("every word of a script is read") {
  CHECK(word_of<word::Open>("open some/where").path == "some/where");
  CHECK(word_of<word::Size>("size 1280 800").height == 800);
  CHECK(after({"step 10", "layer 3", "branch cond", "batch 0", "head 2"}).head == HeadId{0, 0, 2});
  CHECK(after({"head 3 1"}).head == HeadId{0, 0, 1});
  CHECK(after({"step 10 layer 3 kind self branch cond head 2"}).head == HeadId{0, 0, 2});
  CHECK(after({"query 1 0 2"}).query == ChosenQuery{{12}});
  CHECK(after({"query text 2"}).query == ChosenQuery{{2}});
  CHECK(after({"query tokens 3,7-9"}).query == ChosenQuery{{3, 7, 8, 9}});
  CHECK_FALSE(after({"query token 3", "query none"}).query);
  CHECK(action_of<action::SetWords>("words on").look.shown);
  CHECK(!action_of<action::SetWords>("words special off").look.special);
  CHECK(action_of<action::SetWords>("words sort mass").look.by_mass);
  CHECK(action_of<action::SetWords>("words filter red ci").look.filter == "red ci");
  CHECK(action_of<action::SetWords>("words filter none").look.filter.empty());
  CHECK(after({"word 2,3"}).words.chosen == std::vector<int64_t>{2, 3});
  CHECK(after({"word \"red circle\""}).words.chosen == std::vector<int64_t>{1, 2});
  CHECK(after({"word 1", "word none"}).words.chosen.empty());
  CHECK(action_of<action::SetFilm>("film tint").look.over);
  CHECK(action_of<action::SetFilm>("film opacity 0.4").look.opacity == 0.4f);
  CHECK(action_of<action::SetFilm>("film frame 12").look.moment == 12);
  CHECK(!action_of<action::SetFilm>("film loop off").look.loop);
  CHECK(action_of<action::SetFilm>("film rate 12").look.rate == 12);
  CHECK(action_of<action::SetFilm>("film rate auto").look.rate == 0);
  CHECK(has(refused("film rate 0"), "film rate: expected 1 to 60"));
  CHECK(word_of<word::SaveFilm>("film out/").path == "out/");
  CHECK(word_of<word::SaveFilm>("film \"a b.gif\"").path == "a b.gif");
  CHECK(has(refused("film sideways"), "film sideways: no such name"));
  CHECK(has(refused("film a.avi"), "FILE.mp4"));
  CHECK(has(refused("film opacity 2"), "at most 1, got 2"));
  CHECK(has(refused("film frame -1"), "count from 0"));
  CHECK(has(refused("film loop maybe"), "film loop maybe: no such name"));
  CHECK(has(refused("film tint 3"), "expected film none|tint|outline|contour, got 2 words"));
  CHECK(has(refused("words special"), "expected words special on|off, got 1 word"));
  CHECK(action_of<action::Switch>("frames on").part == &ViewState::show_frames);
  CHECK(action_of<action::SetPin>("pin 3 700 200").place == Pin{700, 200});
  CHECK(action_of<action::SetPin>("pin 3 700 200").number == 3);
  CHECK(after({"pin 8 3 2", "pin 8"}).query == ChosenQuery{{3}});
  CHECK_FALSE(action_of<action::SetPin>("unpin 2").place);
  CHECK(has(refused("pin 1 5"), "expected pin N Q K, got 2 words"));
  CHECK(has(refused("pin one"), "expected a whole number"));
  CHECK(has(refused("frames maybe"), "frames maybe: no such name"));
  CHECK(action_of<action::Maximise>("pane frames").pane == ViewPane::frames);
  CHECK(action_of<action::SetTracks>("track rows lse").look ==
        TracksLook{RowTrack::lse, KeyTrack::off});
  CHECK(action_of<action::SetTracks>("track keys mass").look.keys == KeyTrack::mass);
  CHECK(has(refused("track rows entropie"), "track rows entropie: no such name, did you mean"));
  CHECK(has(refused("track keys entropy"), "(off, mass)"));
  CHECK(has(refused("track cols mass"), "track cols: no such name (rows, keys)"));
  CHECK(has(refused("words loud"), "words loud: no such name (on, off, special, sort, filter)"));
  CHECK(action_of<action::SetReverse>("reverse on").on);
  CHECK_FALSE(action_of<action::SetReverse>("reverse off").on);
  CHECK(action_of<action::SetProduct>("product lift").product == ViewProduct::lift);
  CHECK(action_of<action::SetPool>("pool mean").pool == Pool::mean);
  CHECK(action_of<action::SetScale>("scale symlog").scale == ScaleKind::symlog);
  CHECK(action_of<action::SetColormap>("colormap magma").name == "magma");
  CHECK(action_of<action::SetRange>("range 1e-4 0.5").range == ColourRange{false, 1e-4, 0.5});
  CHECK(action_of<action::SetRange>("range auto").range.automatic);
  CHECK(action_of<action::SetRect>("zoom 0 100.5 -10 300").rect == MapRect{0, 100.5, -10, 300});
  action_of<action::Fit>("fit");
  CHECK(action_of<action::Maximise>("pane query").pane == ViewPane::query);
  CHECK(action_of<action::Maximise>("pane ranked").pane == ViewPane::ranked);
  CHECK(action_of<action::Maximise>("pane metrics").pane == ViewPane::timeline);
  CHECK_FALSE(action_of<action::Maximise>("pane all").pane);
  CHECK(word_of<word::Click>("click \"Atlas/L12/H3\"").label == "Atlas/L12/H3");
  CHECK(word_of<word::Click>("click Matrix/Fit").label == "Matrix/Fit");
  CHECK(word_of<word::PressKey>("key Ctrl+Z").chord == parse_chord("Ctrl+Z"));
  CHECK(word_of<word::Wait>("wait exact").seconds == 60);
  CHECK(word_of<word::Wait>("wait idle 2.5").seconds == 2.5);
  CHECK(word_of<word::Wait>("wait query").what == WaitFor::query);
  CHECK(word_of<word::Wait>("wait picture").what == WaitFor::picture);
  CHECK(word_of<word::WaitCalls>("wait calls 3").count == 3);
  CHECK(word_of<word::WaitCalls>("wait calls 3").seconds == 60);
  CHECK(word_of<word::WaitCalls>("wait calls 12 0.5").seconds == 0.5);
  CHECK(word_of<word::Probe>("probe 17 4").key == 4);
  CHECK(word_of<word::Print>("print texture_mib").value->name == "texture_mib");
  const auto expect = word_of<word::Expect>("expect frame_ms_max <= 33.5");
  CHECK(expect.value->name == "frame_ms_max");
  CHECK(expect.op == CompareOp::less_equal);
  CHECK(expect.number == 33.5);
  CHECK(word_of<word::Expect>("expect query == 5 10 22").text == "5 10 22");
  CHECK(word_of<word::Expect>("expect exact != true").op == CompareOp::unequal);
  CHECK(word_of<word::Expect>("expect branch == cond").text == "cond");
  CHECK(word_of<word::Shot>("shot out.png").path == "out.png");
  CHECK(word_of<word::SaveSession>("save-session s.json").path == "s.json");
  word_of<word::Quit>("quit");
}

TEST_CASE("every name of print and every operator is read back") {
  std::set<std::string_view> names;
  for (const ScriptValue& value : script_values()) {
    const std::string line = "print " + std::string(value.name);
    CHECK(word_of<word::Print>(line.c_str()).value == &value);
    CHECK(names.insert(value.name).second);
  }
  CHECK(parse_script_value("print", "head").number);
  CHECK_FALSE(parse_script_value("print", "exact").number);
  for (int i = 0; i <= static_cast<int>(CompareOp::greater_equal); ++i) {
    const auto op = static_cast<CompareOp>(i);
    const std::string line = "expect frames " + std::string(compare_op_text(op)) + " 5";
    CHECK(word_of<word::Expect>(line.c_str()).op == op);
  }
  for (const ScriptWordHelp& word : script_word_help()) CHECK_FALSE(word.help.empty());
}

TEST_CASE("lines, comments and quotes") {
  const Script script = parse_script(
      "\xef\xbb\xbf# a script\r\n"
      "open \"a folder/with # and \\\"\" # here\r\n"
      "\n"
      "\tfit\n"
      "shot a#b.png",
      "x");
  CHECK(script.file == "x");
  REQUIRE(script.lines.size() == 3);
  CHECK(script.lines[0].line == 2);
  CHECK(std::get<word::Open>(script.lines[0].word).path == "a folder/with # and \"");
  CHECK(script.lines[0].text == "open \"a folder/with # and \\\"\"");
  CHECK(script.lines[1].line == 4);
  CHECK(script.lines[2].line == 5);
  CHECK(std::get<word::Shot>(script.lines[2].word).path == "a#b.png");
  CHECK(parse_script("", "x").lines.empty());
  CHECK(parse_script("# nothing\n\n", "x").lines.empty());
  CHECK(has(refused("click \"a"), "closing quote is missing"));
  CHECK(has(refused("click \"a\"b"), "space after the closing quote"));
  CHECK(has(refused("click \"a\\n\""), "backslash"));
  CHECK(has(refused("click \"a\\"), "backslash"));
}

TEST_CASE("what cannot be meant is refused with file, line and what was expected") {
  CHECK(refused("zoon 0 1 2 3") == "a.script:2: zoon: no such command, did you mean zoom?");
  CHECK(has(refused("xyz"), "(open, size, step"));
  CHECK(refused("open") == "a.script:2: open: expected open PATH, got 0 words");
  CHECK(has(refused("open a b"), "got 2 words"));
  CHECK(has(refused("fit 1"), "expected fit, got 1 word"));
  CHECK(has(refused("zoom 0 1 2"), "zoom Q0 Q1 K0 K1, got 3"));
  CHECK(refused("query 5 x 2") == "a.script:2: query: expected a whole number, got \"x\"");
  CHECK(has(refused("query 5 1"), "query T Y X, query text N, query token N"));
  CHECK(has(refused("query text 1 2"), "query T Y X, query text N, query token N"));
  CHECK(has(refused("query 5 1.5 2"), "whole number, got \"1.5\""));
  CHECK(has(refused("layer two"), "whole number"));
  CHECK(has(refused("head 3 x"), "whole number"));
  CHECK(has(refused("size 10 800"), "size 10 800: expected 320x240 to 16384x16384 pixels"));
  CHECK(has(refused("size 800 1"), "320x240"));
  CHECK(has(refused("size 8589934592 800"), "size 8589934592 800"));
  CHECK(has(refused("size 99999999999999999999 800"), "whole number"));
  CHECK(has(refused("reverse yes"), "(on, off)"));
  CHECK(has(refused("product weight"), "did you mean weights?"));
  CHECK(has(refused("pool median"), "(max, mean)"));
  CHECK(has(refused("scale log10"), "no such name"));
  CHECK(has(refused("colormap virdis"), "did you mean viridis?"));
  CHECK(has(refused("range 2 1"), "below the high end"));
  CHECK(has(refused("range automatic"), "range auto"));
  CHECK(has(refused("range 0 inf"), "expected a number, got \"inf\""));
  CHECK(has(refused("zoom 5 5 0 1"), "Q0 < Q1"));
  CHECK(has(refused("zoom nan 5 0 1"), "a number"));
  CHECK(has(refused("pane matrx"), "did you mean matrix?"));
  CHECK(has(refused("key Ctrl+Foo"), "no key"));
  CHECK(has(refused("b side 1"), "(step, layer, chunk,"));
  CHECK(has(refused("b layer x"), "whole number"));
  CHECK(has(refused("difference sign"), "no such name"));
  CHECK(has(refused("wait exac"), "did you mean exact?"));
  CHECK(has(refused("wait exact 0"), "above 0"));
  CHECK(has(refused("wait exact 1 2"), "expected wait exact [SECONDS]"));
  CHECK(has(refused("wait calls"), "how many"));
  CHECK(has(refused("wait calls 0"), "1 or more"));
  CHECK(has(refused("wait calls 2 0"), "above 0"));
  CHECK(has(refused("wait exact -1"), "above 0"));
  CHECK(has(refused("wait exact 1e9"), "86400"));
  CHECK(has(refused("probe -1 0"), "count from 0"));
  CHECK(has(refused("print frame"), "did you mean frames?"));
  CHECK(has(refused("expect frames = 5"), "(==, !=, <, <=, >, >=)"));
  CHECK(has(refused("expect frames < few"), "expect frames: expected a number, got \"few\""));
  CHECK(has(refused("expect branch < cond"), "compared by == or !="));
  CHECK(has(refused("expect exact == yes"), "(true, false)"));
  CHECK(has(refused("expect scale == lag"), "did you mean log?"));
  CHECK_FALSE(usage_text([] { parse_script_line("  # nothing"); }).empty());
}

TEST_CASE("script files are read, and refused where they are none") {
  const TemporaryFolder folder;
  const auto refuse = [&](const char* name) {
    return thrown_text(ErrorCode::file, [&] { read_script(folder.path() / name); });
  };
  write_bytes(folder.path() / "good", "fit\nquit\n");
  CHECK(read_script(folder.path() / "good").lines.size() == 2);
  CHECK(read_script(folder.path() / "good").file == folder / "good");
  CHECK(has(refuse("missing"), "missing"));
  write_bytes(folder.path() / "binary", std::string("fit\0quit", 8));
  CHECK(has(refuse("binary"), "is no text"));
  write_bytes(folder.path() / "long", std::string((1 << 20) + 1, '#'));
  CHECK(has(refuse("long"), "limit 1048576"));
  CHECK_FALSE(thrown_text(ErrorCode::file, [&] { read_script(folder.path()); }).empty());
}

TEST_CASE("a mask is a pattern, a file with its block, on or off") {
  CHECK(after({"mask on"}).mask == MaskLook{true});
  CHECK(after({"mask causal", "mask off"}).mask == MaskLook{});
  CHECK(after({"mask causal", "mask hide"}).mask == MaskLook{false, "causal"});
  CHECK(after({"mask topk:block=32,keep=0.2"}).mask == MaskLook{true, "topk:block=32,keep=0.2"});
  CHECK(after({"mask none"}).mask.text == "none");
  CHECK(after({"mask /b.npy 64"}).mask == MaskLook{true, "/b.npy", 64});
  CHECK(after({"mask /b.npy"}).mask.block == 128);
  CHECK(after({"mask drop 0 16 8 16"}).mask ==
        MaskLook{true, "none", 128, {{0, 16, 8, 16, false}}});
  CHECK(after({"mask brush keep"}).mask.brush == MaskBrush::keep);
  CHECK(after({"mask lost on"}).mask.lost);
  CHECK(after({"mask drop 0 16 8 16", "mask unedited"}).mask.edits.empty());
  CHECK(after({"mask drop 0 16 8 16", "mask causal"}).mask.edits.empty());
  CHECK(has(refused("mask keep 0 64"), "mask keep: expected Q0 Q1 K0 K1"));
  CHECK(has(refused("mask keep 64 0 0 8"), "nothing to edit"));
  CHECK(has(refused("mask brush paint"), "keep"));
  CHECK(word_of<word::Wait>("wait mask").what == WaitFor::mask);
  CHECK(word_of<word::WaitCalls>("wait pictures 3 9").pictures);
  CHECK(has(refused("wait pictures"), "wait pictures: expected how many pictures"));
  CHECK(parse_script_value("print", "output_error").number);
  CHECK_FALSE(parse_script_value("print", "mask").number);
  CHECK(has(refused("mask window"), "mask window: expected window:N"));
  CHECK(has(refused("mask b.npy 0"), "at least 1 token"));
  CHECK(has(refused("mask causal 3"), "only a FILE.npy"));
}
