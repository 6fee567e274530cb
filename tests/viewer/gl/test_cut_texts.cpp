// Texts that have no room: each ends in … and is whole under the mouse. Needs a display: run by
// ctest under xvfb-run.
#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "tests/viewer/gl/real_input.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Arrangement {
  const char* name;
  std::vector<Action> actions;  ///< that lead there from the first layout
};

/// The first layout of the sample, and it with each of the other panes.
std::vector<Arrangement> arrangements(const Document& document) {
  const HeadId other =
      document.other_picker.nearest_to(document.picker.values(document.history.now().head));
  return {{"first", {}},
          {"picked", {action::PickQuery{{{200}}}}},
          {"volume", {action::PickQuery{{{200}}}, action::SetVolume{{.shown = true}}}},
          {"tracks", {action::SetTracks{{RowTrack::text, KeyTrack::mass}}}},
          {"frames", {action::Switch{&ViewState::show_frames, true}}},
          {"mask", {action::SetMask{{.shown = true}}}},
          {"masked",
           {action::SetMask{{.shown = true, .text = "topk:block=32,keep=0.2", .lost = true}}}},
          {"difference",
           {action::SetOther{other}, action::SetDifference{Difference::signed_difference}}},
          {"rows", {action::SetOther{other}, action::ShowRanked{true}}},
          {"heads by number",
           {action::SetAtlas{{.shown = true, .metric = "entropy", .sort = "effective_keys"}}}}};
}

/// Texts of the last frame that end in …, where a mouse can point at them.
std::vector<WrittenText> cut_texts(const HiddenApp& hidden) {
  std::vector<WrittenText> cut;
  for (const WrittenText& text : hidden.app.labels().texts()) {
    if (text.cut && text.rect.width() >= 4) cut.push_back(text);
  }
  return cut;
}

int times_written(const HiddenApp& hidden, const std::string& whole) {
  const auto& texts = hidden.app.labels().texts();
  return static_cast<int>(std::count_if(
      texts.begin(), texts.end(), [&](const WrittenText& text) { return text.whole == whole; }));
}

/// Points at each cut text that is not among `known`; gives those that are not whole then.
std::string untold_texts(HiddenApp& hidden, std::set<std::string>& known) {
  std::string untold;
  for (const WrittenText& text : cut_texts(hidden)) {
    if (!known.insert(text.whole).second) continue;
    const int before = times_written(hidden, text.whole);
    hidden.app.mouse().hover((text.rect.x0 + text.rect.x1) / 2, (text.rect.y0 + text.rect.y1) / 2);
    hidden.settle();
    if (times_written(hidden, text.whole) <= before) untold += text.whole + "\n";
  }
  hidden.app.mouse().hover(2, 2);
  hidden.settle();
  return untold;
}

/// Looks at each arrangement in windows of these sizes; gives the number of texts that were cut.
int look_at_texts(HiddenApp& hidden, std::initializer_list<WindowSize> sizes) {
  hidden.open_sample();
  const ViewState first = hidden.state();
  const std::vector<Arrangement> all = arrangements(*hidden.app.document());
  int cut = 0;
  for (const WindowSize size : sizes) {
    REQUIRE(hidden.force_size(size));
    std::set<std::string> known;
    for (const Arrangement& each : all) {
      hidden.app.document()->history.restart(first);
      for (const Action& action : each.actions) hidden.app.act(action);
      for (const ViewTheme theme : {ViewTheme::dark, ViewTheme::light}) {
        hidden.app.act(action::SetTheme{theme});
        REQUIRE(hidden.wait_for(WaitFor::exact));
        REQUIRE(hidden.wait_for(WaitFor::idle));  // ranked rows, for which nobody waits else
        hidden.settle();
        INFO(each.name << " at " << size.width << "x" << size.height << ", "
                       << (theme == ViewTheme::dark ? "dark" : "light"));
        CHECK(hidden.lost_texts() == "");
        CHECK(untold_texts(hidden, known) == "");
      }
    }
    cut += static_cast<int>(known.size());
  }
  return cut;
}

/// Makes displays that are opened meanwhile those of twice the usual scale.
struct LargeScale {
  LargeScale() { display.set_resources("Xft.dpi: 192\n"); }
  ~LargeScale() { display.set_resources(""); }
  RealInput display;
};

}  // namespace

TEST_CASE("each text that is cut ends in a sign, and is whole under the mouse") {
  HiddenApp hidden(true, hidden_window(), first_settings());
  CHECK(look_at_texts(hidden, {{1280, 800}, {800, 600}, {1920, 1080}}) > 5);
}

TEST_CASE("on a display of twice the usual scale as well each text that is cut can be read") {
  const LargeScale scale;
  HiddenApp hidden(true, hidden_window(), first_settings());
  REQUIRE(hidden.window.scale() == 2);
  CHECK(look_at_texts(hidden, {{1280, 800}, {2560, 1600}}) > 5);
}

TEST_CASE("a hidden window has the usual size whatever the display's scale is") {
  const LargeScale scale;
  Window::Settings settings;
  settings.visible = false;
  const Window window(settings);
  CHECK(window.scale() == 2);
  CHECK(window.width() == 1280);
  CHECK(window.height() == 800);
}
