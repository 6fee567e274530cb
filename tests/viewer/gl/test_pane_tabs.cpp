// The panes below the query, one of them at a time. Needs a display: run by ctest under xvfb-run.
#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct TabbedApp : HiddenApp {
  TabbedApp() {
    open_sample();
    REQUIRE(force_size({1280, 800}));
    REQUIRE(wait_for(WaitFor::exact));
    settle();
  }
  bool there(const std::string& label) const { return app.labels().find(label).has_value(); }
  std::optional<ViewPane> below() const { return pane_below(state()); }
};

}  // namespace

TEST_CASE("panes below the query are a click on their tab away") {
  TabbedApp hidden;
  CHECK_FALSE(hidden.there("Tabs/Rows"));
  for (const char* name : {"Frames", "Mask", "Histogram"}) {
    INFO(name);
    hidden.click(std::string("Tabs/") + name);
    CHECK(hidden.there(std::string(name) + "/Header"));
    for (const char* other : {"Frames", "Mask", "Histogram"}) {
      CHECK(hidden.there(std::string("Tabs/") + other));
      CHECK(hidden.there(std::string(other) + "/Header") == (std::string(other) == name));
    }
  }
  hidden.press("Ctrl+Z");
  CHECK(hidden.below() == ViewPane::mask);
  // The histogram's key brings it to the front first.
  hidden.press("H");
  CHECK(hidden.below() == ViewPane::histogram);
  hidden.press("H");
  CHECK_FALSE(hidden.below());
  CHECK_FALSE(hidden.there("Tabs/Histogram"));
  hidden.press("Shift+F");
  CHECK(hidden.below() == ViewPane::frames);
  hidden.click("Toolbar/B");
  hidden.click("Tabs/Rows");
  CHECK(hidden.below() == ViewPane::ranked);
  CHECK(hidden.there("Rows/Header"));
}

TEST_CASE("a mask whose pane is hidden is named in the map's legend, and taken away there") {
  TabbedApp hidden;
  hidden.click("Tabs/Mask");
  CHECK_FALSE(hidden.there("Legend/Mask"));
  hidden.click("Mask/Pattern");
  for (const char* no_word : {"Pattern/off", "Pattern/none"}) CHECK_FALSE(hidden.there(no_word));
  hidden.click("Pattern/topk");
  REQUIRE(hidden.wait_for(WaitFor::mask));
  hidden.settle();
  CHECK_FALSE(hidden.there("Legend/Mask"));
  hidden.click("Tabs/Histogram");
  REQUIRE(hidden.there("Legend/Mask"));
  CHECK(hidden.state().mask.text == "topk");
  const auto& texts = hidden.app.labels().texts();
  CHECK(std::any_of(texts.begin(), texts.end(),
                    [](const WrittenText& text) { return text.whole == "mask topk"; }));
  hidden.click("Legend/Mask");
  CHECK(hidden.below() == ViewPane::mask);
  hidden.click("Tabs/Histogram");
  hidden.click("Legend/Mask off");
  CHECK(hidden.state().mask.text.empty());
  CHECK_FALSE(hidden.there("Legend/Mask"));
  CHECK(hidden.below() == ViewPane::histogram);
  hidden.press("Ctrl+Z");
  CHECK(hidden.state().mask.text == "topk");
  // No mask, and one that keeps everything, are one word of the list.
  hidden.click("Tabs/Mask");
  hidden.click("Mask/Pattern");
  hidden.click("Pattern/dense");
  CHECK(hidden.state().mask.text.empty());
}
