#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/script/script_runner.h"
#include "viewer/view/view_actions.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A window without one: what is asked for happens after a number of frames.
class FakeHost : public ScriptHost {
 public:
  void open(const std::string& path) override {
    picker_.emplace(map_sources(Capture::open(path)));
    state_ = opened_view(ViewLimits::of(picker_->calls()));
    log.push_back("open");
  }
  void resize(int width, int height) override {
    log.push_back("size " + std::to_string(width) + " " + std::to_string(height));
  }
  const std::vector<MapSource>* calls() const override {
    return picker_ ? &picker_->calls() : nullptr;
  }
  SettingPlace place() const override {
    const HeadPicker* const picker = picker_ ? &*picker_ : nullptr;
    SettingPlace place{.state = state_, .picker = picker, .others = picker};
    if (numbers.film_frames) place.moments = static_cast<int64_t>(*numbers.film_frames);
    return place;
  }
  const ViewState& state() const override { return state_; }
  void act(const Action& action) override {
    state_ = apply_action(state_, action, ViewLimits::of(picker_->calls()));
  }
  bool click(const std::string& label) override {
    if (frame < labels_from) return false;
    const auto all = labels();
    if (std::find(all.begin(), all.end(), label) == all.end()) return false;
    log.push_back("click " + label);
    input_until_ = frame + 2;
    return true;
  }
  bool hover(const std::string& label) override {
    log.push_back("hover " + label);
    return true;
  }
  std::vector<std::string> labels() const override {
    return {"Matrix/Fit", "Matrix/Zoom in", "Query/Play", "Toolbar/Scale"};
  }
  void press(const KeyChord& chord) override {
    log.push_back("key " + chord_text(chord));
    input_until_ = frame + 2;
  }
  bool input_done() const override { return frame >= input_until_; }
  void play(bool on) override { numbers.playing = on; }
  bool reached(WaitFor what) const override { return frame >= reached_from.at(what); }
  std::string problem_before(WaitFor) const override { return problem; }
  std::string waiting_for() const override { return "queue 12"; }
  Measured measured() const override { return numbers; }
  std::optional<ProbedEntry> probe(int64_t query, int64_t key) override {
    if (frame < probed_from) return std::nullopt;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (key == 1) return ProbedEntry{query, key, nan, nan};
    if (key == 2) return ProbedEntry{query, key, 0.75, nan, 64, 0.25};
    if (key == 5) return ProbedEntry{query, key, nan, nan, 64, nan};
    const double logit = key == 0 ? -std::numeric_limits<double>::infinity() : -1.5;
    return ProbedEntry{query, key, std::exp(logit), logit};
  }
  std::optional<ProbedEntry> probe_other(int64_t query, int64_t key) override {
    if (frame < probed_from + 3) return std::nullopt;
    return ProbedEntry{query, key, std::exp(-2.5), key == 0 ? std::nan("") : -2.5};
  }
  void show_other(bool on) override { log.push_back(on ? "show b" : "show a"); }
  void print(const std::string& line) override { printed.push_back(line); }
  void shot(const std::string& path) override {
    log.push_back("shot " + path);
    shot_until_ = frame + 1;
  }
  bool shot_done() const override { return frame >= shot_until_; }
  void play_film(bool on) override { log.push_back(on ? "play" : "stop"); }
  void save_film(const std::string& path) override {
    log.push_back("film " + path);
    film_until_ = frame + 3;
  }
  bool film_saved() override {
    if (film_fails) throw file_error("film", "", "no room");
    return frame >= film_until_;
  }
  void save_session(const std::string& path) override {
    if (path == "refused") throw file_error(path, "", "already exists");
    log.push_back("save " + path);
  }

  int frame = 0;
  int labels_from = 0, probed_from = 0;
  bool film_fails = false;
  std::string problem;
  std::vector<std::string> log, printed;
  std::map<WaitFor, int> reached_from{
      {WaitFor::picture, 0}, {WaitFor::query, 0}, {WaitFor::exact, 0}, {WaitFor::idle, 0}};
  Measured numbers = [] {
    Measured first;
    first.frames = 7;
    first.query_ms = 1.23456789;
    return first;
  }();

 private:
  std::optional<HeadPicker> picker_;
  ViewState state_;
  int input_until_ = 0, shot_until_ = 0, film_until_ = 0;
};

/// Runs a script at ten frames a second, for 2000 frames at most.
class Run {
 public:
  explicit Run(const std::string& text, bool opened = true) {
    write_video_capture(folder_);
    if (opened) host.open(folder_.path());
    text_ = text;
  }
  /// "" or the error.
  std::string go() {
    ScriptRunner runner(parse_script(text_, "s"), host);
    while (runner.step(host.frame * 0.1) == ScriptRunner::State::running) {
      ++host.frame;
      REQUIRE(host.frame < 2000);
    }
    CHECK(runner.exit_code() == (runner.error().empty() ? 0 : 1));
    CHECK((runner.state() == ScriptRunner::State::failed) == !runner.error().empty());
    quit = runner.quit();
    return runner.error();
  }

  FakeHost host;
  bool quit = false;
  TemporaryFolder folder_;

 private:
  std::string text_;
};

std::string error_of(const std::string& text) { return Run(text).go(); }

}  // namespace

TEST_CASE("a script changes the state by recorded values") {
  Run run(
      "size 1280 800\nstep 10\nlayer 3\nbranch cond\nhead 2\nquery 1 2 3\nproduct lift\n"
      "zoom 0 10 5 20\nrange 0.5 2\npool mean\ncolormap magma\n"
      "expect step == 10\nexpect layer == 3\nexpect branch == cond\nexpect batch == 1\n"
      "expect head > 1\nexpect query == 1 2 3\nexpect product == lift\nexpect pool != max\n"
      "expect colormap == magma\nexpect scale == log\nexpect rows == 26\nexpect cols <= 26\n"
      "expect reverse == off\nexpect exact == false\nquery text 1\nexpect query == text 1\n"
      "head 1 0\nexpect layer == 1\nexpect head == 0\nquit\nexpect head == 99\n");
  CHECK(run.go().empty());
  CHECK(run.quit);
  const ViewState& state = run.host.state();
  CHECK(state.head == HeadId{2, 1, 0});
  CHECK(state.rect == MapRect{0, 10, 5, 20});
  CHECK(state.range == ColourRange{false, 0.5, 2});
  CHECK(state.query == ChosenQuery{{1}});
  CHECK(run.host.log == std::vector<std::string>{"open", "size 1280 800"});
  // Each change was drawn before the next command.
  CHECK(run.host.frame >= 13);
}

TEST_CASE("a script chooses words and films, and waits until a film is written") {
  Run run(
      "words special off\nword \"red\"\nexpect word == 0\nword 0,1\nexpect word == 0,1\n"
      "film outline\nfilm linear\nfilm one\nfilm opacity 0.5\nfilm play\nfilm stop\n"
      "film a.gif\nword none\nexpect word == none\nfilm none\n");
  CHECK(run.go() == "");
  const ViewState& state = run.host.state();
  CHECK(state.words.shown);
  CHECK_FALSE(state.words.special);
  CHECK_FALSE(state.film.over);
  CHECK(state.film.mode == FilmMode::outline);
  CHECK(state.film.time == FilmTime::linear);
  CHECK(state.film.one);
  CHECK(state.film.opacity == 0.5f);
  CHECK(run.host.log == std::vector<std::string>{"open", "play", "stop", "film a.gif"});
  Run fails("film a.mp4\nquit");
  fails.host.film_fails = true;
  CHECK(has(fails.go(), "s:1: film: no room"));
  Run outside("film frame 7");
  outside.host.numbers.film_frames = 7;
  CHECK(outside.go() == "s:1: film frame 7: outside the film (valid 0 to 6)");
  CHECK(has(error_of("word 2"), "word 2: outside the text"));
}

TEST_CASE("a script opens its capture, and needs one") {
  Run run("", false);
  CHECK(run.go().empty());
  CHECK_FALSE(run.quit);
  Run opens("open \"" + run.folder_.path().string() + "\"\nexpect rows == 26\n", false);
  CHECK(opens.go().empty());
  for (const char* line : {"fit", "layer 1", "query 0 0 0", "wait exact", "probe 0 0",
                           "expect rows == 1", "print exact", "save-session x"}) {
    INFO(line);
    CHECK(has(Run(line, false).go(), "no capture is open"));
  }
  CHECK(Run("open /nowhere/at/all", false).go().starts_with("s:1: /nowhere/at/all"));
}

TEST_CASE("a failed expectation ends the run with what was got") {
  CHECK(error_of("fit\n\nexpect frames < 5\nshot never.png") == "s:3: expect frames < 5: got 7");
  CHECK(error_of("expect branch == cond") == "s:1: expect branch == cond: got uncond");
  CHECK(error_of("expect query == 0 0 0") == "s:1: expect query == 0 0 0: got none");
  CHECK(error_of("expect texture_mib < 5") == "s:1: texture_mib: not known yet");
  // Compared as measured, not as printed.
  CHECK(error_of("expect query_ms > 1.2345678").empty());
  CHECK(error_of("expect query_ms == 1.23457") == "s:1: expect query_ms == 1.23457: got 1.23457");
  for (const char* good : {"expect frames == 7", "expect frames != 8", "expect frames < 8",
                           "expect frames <= 7", "expect frames > 6", "expect frames >= 7"}) {
    CHECK(error_of(good).empty());
  }
  for (const char* bad : {"expect frames == 8", "expect frames != 7", "expect frames < 7",
                          "expect frames <= 6", "expect frames > 7", "expect frames >= 8"}) {
    CHECK(has(error_of(bad), "got 7"));
  }
}

TEST_CASE("errors carry file and line") {
  CHECK(error_of("fit\nlayer 9") == "s:2: layer 9: not in this capture (it has 1, 3)");
  CHECK(has(error_of("query 9 0 0"), "s:1: query 9 0 0: outside the grid"));
  CHECK(has(error_of("range 0 1"), "s:1: range 0 1: a log scale"));
  CHECK(has(error_of("product logits\nscale log"), "s:2: scale log: logits"));
  CHECK(error_of("difference signed") == "s:1: there is no side B to compare with");
  CHECK(error_of("save-session refused") == "s:1: refused: already exists");
  CHECK(has(error_of("probe 26 0"), "s:1: probe 26 0: outside the map (queries 0 to 25"));
}

TEST_CASE("waits go on when it is there, and give up in time") {
  Run run("wait exact\nprint frames\nwait picture 1\nwait query\nwait idle\n");
  run.host.reached_from[WaitFor::exact] = 42;
  CHECK(run.go().empty());
  CHECK(run.host.frame == 42);
  CHECK(run.host.printed == std::vector<std::string>{"frames 7"});
  Run late("fit\nwait query 1.5\n");
  late.host.reached_from[WaitFor::query] = 1000;
  CHECK(late.go() == "s:2: wait query: not there after 1.5 s (queue 12)");
  CHECK(late.host.frame == 1 + 15);
  Run usual("wait idle");
  usual.host.reached_from[WaitFor::idle] = 5000;
  CHECK(has(usual.go(), "not there after 60 s"));
  CHECK(usual.host.frame == 600);
}

TEST_CASE("a wait for what cannot come ends at once with the cause") {
  Run run("fit\nwait exact\n");
  run.host.reached_from[WaitFor::exact] = 5000;
  run.host.problem = "q.safetensors: q: NaN";
  CHECK(run.go() == "s:2: wait exact: q.safetensors: q: NaN");
  CHECK(run.host.frame <= 2);
  // A wait for a picture that is there already is not spoiled by the problem.
  Run there("wait picture\n");
  there.host.problem = "q.safetensors: q: NaN";
  CHECK(there.go().empty());
}

TEST_CASE("clicks and keys take their frames, and labels may take some to appear") {
  Run run("click Matrix/Fit\nkey Ctrl+Z\nclick \"Matrix/Zoom in\"\nshot a.png\nsave-session b");
  run.host.labels_from = 5;
  CHECK(run.go().empty());
  CHECK(run.host.log == std::vector<std::string>{"open", "click Matrix/Fit", "key Ctrl+Z",
                                                 "click Matrix/Zoom in", "shot a.png", "save b"});
  CHECK(run.host.frame >= 5 + 3 * 2 + 1);
  const std::string text = error_of("click Matrix/Fot");
  CHECK(has(text, "s:1: click \"Matrix/Fot\": no such label; near it: \"Matrix/Fit\""));
  CHECK(has(error_of("click Scale/Scale"), "near it: \"Toolbar/Scale\""));
  CHECK(has(error_of("click Zzz"), "the window has \"Matrix/Fit\", \"Matrix/Zoom in\""));
}

TEST_CASE("a probe does not give what a block holds, or nothing, as the entry") {
  Run run("probe 3 1\nprobe 3 2\nprobe 3 5\n");
  CHECK(run.go().empty());
  REQUIRE(run.host.printed.size() == 3);
  CHECK(run.host.printed[0] == R"({"q":3,"k":1,"weight":null,"logit":null,"exact":false})");
  CHECK(run.host.printed[1] == R"({"q":3,"k":2,"weight":null,"logit":null,"exact":false,)"
                               R"("block":64,"block_max":0.75,"block_mean":0.25})");
  CHECK(run.host.printed[2] == R"({"q":3,"k":5,"weight":null,"logit":null,"exact":false,)"
                               R"("block":64,"block_max":null,"block_mean":null})");
}

TEST_CASE("probes and prints are lines") {
  Run run("probe 3 4\nprobe 3 0\nprint query_ms\nprint query\nprint layer\nprint exact");
  CHECK(run.go().empty());
  REQUIRE(run.host.printed.size() == 6);
  const auto probed = Json::parse(run.host.printed[0]);
  CHECK(probed.size() == 5);
  CHECK(probed["q"] == 3);
  CHECK(probed["k"] == 4);
  CHECK(probed["weight"] == std::exp(-1.5));
  CHECK(probed["logit"] == -1.5);
  CHECK(probed["exact"] == true);
  CHECK(run.host.printed[0].find('\n') == std::string::npos);
  CHECK(Json::parse(run.host.printed[1])["logit"].is_null());
  CHECK(Json::parse(run.host.printed[1])["weight"] == 0);
  CHECK(run.host.printed[2] == "query_ms 1.23457");
  CHECK(run.host.printed[3] == "query none");
  CHECK(run.host.printed[4] == "layer 1");
  CHECK(run.host.printed[5] == "exact false");
}

TEST_CASE("a probe waits until its numbers are there") {
  Run run("probe 3 4\nprint layer");
  run.host.probed_from = 20;
  CHECK(run.go().empty());
  CHECK(run.host.frame >= 20);
  REQUIRE(run.host.printed.size() == 2);
  CHECK(Json::parse(run.host.printed[0])["logit"] == -1.5);
  CHECK(run.host.printed[1] == "layer 1");
  Run never("probe 3 4");
  never.host.probed_from = 1 << 20;
  CHECK(never.go() == "s:1: probe 3 4: not there after 60 s (queue 12)");
}

TEST_CASE("a script compares, and probes tell both sides") {
  Run run(
      "b layer 3\nexpect b == step 0 layer 3 branch uncond head 0\nb head 1 2\n"
      "expect b == step 0 layer 1 branch uncond head 2\ndifference abs\n"
      "expect difference == abs\nb show on\nb show off\nprobe 3 4\nprobe 3 0\nb off\n"
      "expect b == none\nexpect difference == off\nprobe 3 4\n");
  CHECK(run.go().empty());
  CHECK(run.host.log == std::vector<std::string>{"open", "show b", "show a"});
  REQUIRE(run.host.printed.size() == 3);
  const auto json = Json::parse(run.host.printed[0]);
  CHECK(json["weight"].get<double>() == std::exp(-1.5));
  CHECK(json["b"]["weight"].get<double>() == std::exp(-2.5));
  CHECK(json["b"]["logit"] == -2.5);
  CHECK(json["difference"]["weight"].get<double>() == std::exp(-1.5) - std::exp(-2.5));
  CHECK(json["difference"]["logit"] == 1);
  CHECK(json["difference"]["log2_ratio"].get<double>() == Approx(1 / std::log(2.0)));
  // A masked entry of A: no ratio to 0, and no logit.
  const auto masked = Json::parse(run.host.printed[1]);
  CHECK(masked["difference"]["log2_ratio"].is_null());
  CHECK(masked["difference"]["logit"].is_null());
  CHECK_FALSE(Json::parse(run.host.printed[2]).contains("b"));
  CHECK(error_of("b show on") == "s:1: b show: there is no side B");
  CHECK(has(error_of("b capture elsewhere"), "s:1: b capture elsewhere: this window"));
  CHECK(has(error_of("b layer 9"), "s:1: layer 9: not in this capture (it has 1, 3)"));
}
