// A view as a script in an address: what is written shows the same again, and what somebody else
// writes can do nothing but look.
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/script/script_runner.h"
#include "viewer/script/view_script.h"
#include "viewer/view/view_actions.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A window that can do nothing but look.
class LookingHost : public ScriptHost {
 public:
  explicit LookingHost(std::vector<MapSource> calls)
      : picker_(std::move(calls)), state_(opened_view(ViewLimits::of(picker_.calls()))) {}
  void open(const std::string&) override { FAIL("open"); }
  void resize(int, int) override { FAIL("resize"); }
  const std::vector<MapSource>* calls() const override { return &picker_.calls(); }
  SettingPlace place() const override {
    return {.state = state_, .picker = &picker_, .others = &picker_};
  }
  const ViewState& state() const override { return state_; }
  void act(const Action& action) override {
    state_ = apply_action(state_, action, ViewLimits::of(picker_.calls()));
  }
  bool click(const std::string&) override { return false; }
  bool hover(const std::string&) override { return false; }
  std::vector<std::string> labels() const override { return {}; }
  void press(const KeyChord&) override { FAIL("press"); }
  bool input_done() const override { return true; }
  void play(bool) override { FAIL("play"); }
  bool reached(WaitFor) const override { return false; }
  std::string problem_before(WaitFor) const override { return ""; }
  std::string waiting_for() const override { return ""; }
  Measured measured() const override { return {}; }
  std::optional<ProbedEntry> probe(int64_t, int64_t) override { return std::nullopt; }
  void print(const std::string&) override { FAIL("print"); }
  void shot(const std::string&) override { FAIL("shot"); }
  bool shot_done() const override { return true; }
  void save_session(const std::string&) override { FAIL("save"); }
  void play_film(bool) override { FAIL("film"); }
  void save_film(const std::string&) override { FAIL("film"); }
  bool film_saved() override { return true; }

 private:
  HeadPicker picker_;
  ViewState state_;
};

/// The state after a script, in a window that was just opened.
ViewState shown(const std::vector<MapSource>& calls, const Script& script) {
  LookingHost host(calls);
  ScriptRunner runner(script, host);
  int steps = 0;
  while (runner.step(0) == ScriptRunner::State::running) REQUIRE(++steps < 1000);
  CHECK(runner.error().empty());
  return host.state();
}

std::vector<MapSource> video_calls(const TemporaryFolder& folder) {
  write_video_capture(folder);
  return map_sources(Capture::open(folder.path()));
}

}  // namespace

TEST_CASE("a view's script shows the same view again") {
  const TemporaryFolder folder;
  const auto calls = video_calls(folder);
  const HeadPicker picker(calls);
  for (const char* text :
       {"",
        "step 10",
        "step 10\nlayer 3\nbranch cond\nhead 2",
        "query 1 2 3",
        "query text 1",
        "query 0:2 1 2:4",
        "query token 1",
        "reverse on\nquery 0 0 1",
        "product lift\nscale linear\npool mean\ncolormap magma\nrange 0.5 2.25",
        "product logits",
        "product logits\nscale symlog\nrange -3 4.5",
        "range minmax",
        "zoom 0 10 5.25 20.5",
        "fit",
        "order yxt",
        "order hilbert rows\norder yxt keys",
        "order tiles:1x2x2\nzoom 1 9 2 10",
        "aspect equal",
        "pane query",
        "pin 2 3 4\nword 1\nwords on\ntrack keys mass\nvolume emission\nvolume slice y 1",
        "atlas on\natlas entropy\natlas sort text_mass\natlas filter entropy<3\natlas exact"}) {
    CAPTURE(text);
    const ViewState view = shown(calls, parse_script(text, "s"));
    const std::string script = view_script(view, picker);
    CAPTURE(script);
    CHECK(script.size() < kMostViewScript);
    CHECK(shown(calls, parse_view_script(script)) == view);
    CHECK(view_script(shown(calls, parse_view_script(script)), picker) == script);
  }
}

TEST_CASE("a view's script always says whether all heads and words are shown") {
  const TemporaryFolder folder;
  const auto calls = video_calls(folder);
  const HeadPicker picker(calls);
  // A window may begin with them.
  CHECK(has(view_script(shown(calls, parse_script("", "s")), picker), "atlas off\n"));
  CHECK(has(view_script(shown(calls, parse_script("atlas on", "s")), picker), "atlas on\n"));
  CHECK(has(view_script(shown(calls, parse_script("", "s")), picker), "words off\n"));
  // Windows begin with it by what the capture has.
  CHECK(
      has(view_script(shown(calls, parse_script("film contour", "s")), picker), "film contour\n"));
}

TEST_CASE("a view's script leaves out what its head does not have") {
  const TemporaryFolder folder;
  const auto calls = video_calls(folder);
  const HeadPicker picker(calls);
  const ViewState plain = shown(calls, parse_script("volume on\npin 1 2 3", "s"));
  ViewState view = plain;
  view.segment = "ref";
  view.volume.slice = VolumeSlice{VolumeAxis::t, 40};
  CHECK(view_script(view, picker) == view_script(plain, picker));
  CHECK(shown(calls, parse_view_script(view_script(view, picker))) == plain);
  // Ranked rows are side B's.
  view = shown(calls, parse_script("pin 1 2 3\nb head 1\npane ranked", "s"));
  REQUIRE(view.maximised == ViewPane::ranked);
  ViewState alone = view;
  alone.other.reset();
  alone.maximised.reset();
  CHECK(shown(calls, parse_view_script(view_script(view, picker))) == alone);
}

TEST_CASE("a view's script has room in an address: a part that is too long is left out") {
  const TemporaryFolder folder;
  const auto calls = video_calls(folder);
  const HeadPicker picker(calls);
  ViewState view =
      shown(calls, parse_script("head 1\natlas entropy\nquery 1 2 3\nzoom 0 10 5 20", "s"));
  const ViewState without = view;
  for (int i = 0; i < 300; ++i) view.atlas.filter += "entropy<3 ";
  const std::string script = view_script(view, picker);
  CHECK(script.size() <= kMostViewScript);
  CHECK(shown(calls, parse_view_script(script)) == without);
}

TEST_CASE("every head of a capture has a view's script of its own") {
  const TemporaryFolder folder;
  // The same layer has calls of three kinds; slots and chunks stand in some of them alone.
  const auto call = [&](const char* name, std::vector<std::pair<const char*, const char*>> facts) {
    CallFile file;
    file.pair({1, 2, 8, 4}, {1, 2, 8, 4});
    for (const auto& [key, value] : facts) file.fact(key, value);
    file.write(folder.path() / name);
  };
  call("a.safetensors", {{"step", "0"}, {"layer", "0"}, {"kind", "self"}});
  call("b.safetensors", {{"step", "0"}, {"layer", "0"}, {"kind", "cross"}});
  call("c.safetensors",
       {{"step", "5"}, {"layer", "0"}, {"kind", "cross"}, {"branches", R"(["cond"])"}});
  call("d.safetensors",
       {{"step", "5"}, {"layer", "2"}, {"kind", "self"}, {"branches", R"(["cond"])"}});
  call("e.safetensors",
       {{"step", "5"}, {"layer", "2"}, {"kind", "self"}, {"branches", R"(["a \"b\" #c"])"}});
  const auto calls = map_sources(Capture::open(folder.path()));
  REQUIRE(calls.size() >= 4);
  const HeadPicker picker(calls);
  ViewState view = opened_view(ViewLimits::of(calls));
  for (size_t place = 0; place < calls.size(); ++place) {
    for (size_t item = 0; item < calls[place].batch.size(); ++item) {
      view.head = {static_cast<int64_t>(place), static_cast<int64_t>(item), 1};
      const std::string script = view_script(view, picker);
      CAPTURE(place, item, script);
      CHECK(shown(calls, parse_view_script(script)).head == view.head);
    }
  }
}

TEST_CASE("an address can do nothing but look") {
  for (const char* text : {"open /etc/passwd",
                           "size 9 9",
                           "b capture /etc",
                           "b head 1",
                           "shot x.png",
                           "film x.gif",
                           "film play",
                           "save-session x",
                           "save-mask x.npy",
                           "mask x.npy",
                           "mask spatial:frames=1",
                           "key F12",
                           "type x",
                           "click Toolbar/Fit",
                           "hover x",
                           "drag x 0 0 1 1",
                           "wheel x 1",
                           "quit",
                           "play on",
                           "wait exact",
                           "probe 0 0",
                           "print frames",
                           "expect frames > 0",
                           "timeline on",
                           "pin 3",
                           "order order.npy",
                           "order ../x rows",
                           "layer 1\nhead 0\nshot x.png"}) {
    CAPTURE(text);
    const std::string problem = usage_text([&] { parse_view_script(text); });
    CHECK((has(problem, "words that change what is looked at") || has(problem, "address:1: size")));
  }
  CHECK(has(usage_text([] { parse_view_script("layer x"); }), "address:1: "));
  CHECK(has(usage_text([] { parse_view_script("%%%"); }), "address:1: "));
  CHECK(has(usage_text([] { parse_view_script(std::string(2001, '#')); }), "at most 2000 bytes"));
  CHECK(parse_view_script("").lines.empty());
}
