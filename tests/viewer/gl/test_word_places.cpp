// Every word of the window's scripts has a place to click. Needs a display: run by ctest under
// xvfb-run.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "viewer/script/script_words.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The labels to click one after the other; the last one is the word's place, and is not clicked.
using Way = std::vector<std::string>;

/// By the usage of the word.
const std::map<std::string, Way>& ways() {
  static const std::map<std::string, Way> kWays{
      {"open PATH", {"Toolbar/Menu", "File/Open\u2026"}},
      {"step V", {"Toolbar/Step"}},
      {"layer V", {"Toolbar/Layer"}},
      {"head V | head L H", {"Toolbar/Head"}},
      {"reverse on|off", {"Query/Attended by"}},
      {"query T Y X | query text N | query token N | query tokens N,N-M... | query none",
       {"Toolbar/Place"}},
      {"product weights|logits|lift", {"Toolbar/Lift"}},
      {"pool max|mean", {"Toolbar/Look", "Look/Mean"}},
      {"scale log|linear|sqrt|symlog", {"Toolbar/Look", "Look/Scale"}},
      {"colormap NAME", {"Toolbar/Look", "Look/Colours"}},
      {"range LO HI | range auto|minmax", {"Histogram/Low"}},
      {"zoom Q0 Q1 K0 K1", {"Toolbar/Place"}},
      {"aspect equal|fill", {"Toolbar/Menu", "View/Equal axes"}},
      {"magnify on|off", {"Matrix/Magnify"}},
      {"order stored|raster|yxt|tiles:TxHxW|hilbert|morton|FILE [rows|keys]", {"Matrix/Order"}},
      {"other-order NAME|FILE [rows|keys]", {"Toolbar/Menu", "View/Order before"}},
      {"theme dark|light", {"Toolbar/Theme"}},
      {"histogram on|off", {"Tabs/Histogram"}},
      {"column SHARE", {"Split/Columns"}},
      {"frames on|off", {"Tabs/Frames"}},
      {"atlas on|off", {"Toolbar/Menu", "Panes/Heads"}},
      {"atlas thumbnails|class|METRIC", {"Atlas/Cells"}},
      {"atlas sort layers|METRIC", {"Atlas/Sort"}},
      {"atlas filter WORDS|none", {"Atlas/Find"}},
      {"atlas exact|sampled", {"Atlas/Exact"}},
      {"heads select LIST|none", {"Atlas/L0/H0"}},
      {"volume on|off|max|emission", {"Query/Volume"}},
      {"volume threshold V", {"Query/Volume", "Volume/Threshold"}},
      {"volume orbit AZ EL", {"Query/Volume", "Volume/Cells"}},
      {"volume zoom Z", {"Query/Volume", "Volume/Cells"}},
      {"volume slice t|y|x N|none", {"Query/Volume", "Volume/t"}},
      {"timeline on|off", {"Toolbar/Menu", "Panes/Steps"}},
      {"timeline none|METRIC", {"Timeline/Curve"}},
      {"timeline over steps|layers", {"Timeline/Layers"}},
      {"track rows entropy|lse|text|off", {"Toolbar/Menu", "View/Numbers of rows"}},
      {"track keys mass|off", {"Toolbar/Menu", "View/Mass of keys"}},
      {"word N[,N...]|A-B|\"TEXT\"|none", {"Words/3"}},
      {"words on|off", {"Toolbar/Menu", "Panes/Words"}},
      {"words special on|off", {"Words/Special"}},
      {"words sort prompt|mass", {"Words/Mass"}},
      {"words filter TEXT|none", {"Words/Find"}},
      {"film none|tint|outline|contour", {"Query/Film", "Film/Video"}},
      {"film opacity X", {"Query/Film", "Film/Video", "Video/tint", "Film/Opacity"}},
      {"film all|one", {"Query/Film", "Film/One"}},
      {"film frame N", {"Query/Film", "Film/One", "Film/Time"}},
      {"film latent|nearest|linear", {"Query/Film", "Film/Frames"}},
      {"film rate N|auto", {"Query/Film", "Film/A second"}},
      {"film loop on|off", {"Query/Film", "Film/Loop"}},
      {"film play|stop", {"Query/Film", "Film/One", "Film/Play"}},
      {"film FILE.gif|.mp4|.png|.svg|.pdf|FOLDER/", {"Query/Film", "Film/Save GIF"}},
      {"mask on|hide|off", {"Tabs/Mask"}},
      {"mask PATTERN|FILE.json|FILE.npy [BLOCK]", {"Tabs/Mask", "Mask/Text"}},
      {"mask keep|drop Q0 Q1 K0 K1 | mask unedited", {"Tabs/Mask", "Mask/Keep"}},
      {"mask brush keep|drop|off", {"Tabs/Mask", "Mask/Drop"}},
      {"mask lost on|off", {"Tabs/Mask", "Mask/Pattern", "Pattern/causal", "Mask/Lost"}},
      {"save-mask FILE.npy", {"Tabs/Mask", "Mask/Pattern", "Pattern/causal", "Mask/Save"}},
      {"b step|layer|chunk|kind|branch|block|slot|batch|head V | b head L H | b off",
       {"Toolbar/B", "B/Layer"}},
      {"difference off|signed|abs|logratio", {"Toolbar/B", "Difference/signed"}},
      {"b split SHARE|off", {"Toolbar/B", "B/Split"}},
      {"b lock|release zoom|range|cursor", {"Toolbar/B", "B/Split", "B/Zoom"}},
      {"b zoom Q0 Q1 K0 K1", {"Toolbar/B", "B/Split", "B/Zoom", "Matrix/Map"}},
      {"b ranked on|off", {"Toolbar/B", "Tabs/Rows"}},
      {"b capture PATH", {"Toolbar/Menu", "File/Open side B\u2026"}},
      {"b show on|off", {"Toolbar/B", "B/Show"}},
      {"pane NAME", {"Matrix/Header"}},
      {"fit", {"Toolbar/Menu", "View/Whole map"}},
      {"pin N", {"Toolbar/Menu", "View/Pin 1"}},
      {"unpin N", {"Toolbar/Menu", "View/Unpin 1"}},
      {"walk smaller|larger", {"Toolbar/Menu", "View/Next smaller entry"}},
      {"walk x|y|t N", {"Query/t2"}},
      {"figure FILE.pdf|.svg|.png", {"Toolbar/Menu", "File/Page of the map"}},
      {"shot FILE", {"Toolbar/Menu", "File/Picture"}},
      {"save-session FILE", {"Toolbar/Menu", "File/Save session"}},
      {"save-heads FILE.json", {"Toolbar/Menu", "File/List of heads"}},
      {"type TEXT", {"Toolbar/Search"}},
      {"key CHORD", {"Toolbar/Help"}}};
  return kWays;
}

/// Words for which there is no place that could be clicked in this capture, and why.
const std::map<std::string, std::string>& without_place() {
  static const std::string kOfSeveral = "a list beside Layer, of captures that have several";
  static const std::string kOfSteps = "a control of the steps, of captures that have several";
  static const std::map<std::string, std::string> kWithout{
      {"size W H", "the window's edges"},
      {"chunk V", kOfSeveral},
      {"kind V", kOfSeveral},
      {"branch V", kOfSeveral},
      {"block V", kOfSeveral},
      {"slot V", kOfSeveral},
      {"batch V", kOfSeveral},
      {"segment NAME|none", "buttons of the query pane, of token maps with several grids"},
      {"timeline loop on|off", kOfSteps},
      {"timeline speed N", kOfSteps},
      {"play on|off", kOfSteps},
      {"timeline follow on|off", "a button of the steps, of captures that grow"},
      {"pin N Q K", "P over the entry, which the mouse is on already"},
      {"click LABEL", "the mouse itself"},
      {"hover LABEL", "the mouse itself"},
      {"drag LABEL X0 Y0 X1 Y1 [shift] [ctrl]", "the mouse itself"},
      {"wheel LABEL N", "the mouse itself"},
      {"wait picture|query|exact|atlas|mask|idle [SECONDS] | wait calls|pictures N [SECONDS]",
       "people wait as they like"},
      {"probe Q K", "the status line reads the entry under the mouse"},
      {"print NAME", "what it tells is seen"},
      {"expect NAME OP VALUE", "people see for themselves"},
      {"quit", "the window's own cross"}};
  return kWithout;
}

}  // namespace

TEST_CASE("every word of scripts has a place to click, or a reason why not") {
  HiddenApp hidden(true, hidden_window(), first_settings());
  hidden.open_sample();
  REQUIRE(hidden.force_size({1280, 800}));
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.app.act(action::SetTimeline{{.shown = true, .metric = "entropy"}});
  hidden.app.act(action::SetPin{1, Pin{700, 200}});
  hidden.settle();
  const ViewState first = hidden.state();
  std::set<std::string> known;
  for (const ScriptWordHelp& word : script_word_help()) {
    const std::string usage(word.usage);
    INFO(usage);
    known.insert(usage);
    const auto way = ways().find(usage);
    CHECK((way == ways().end()) == without_place().contains(usage));
    if (way == ways().end()) continue;
    for (size_t i = 0; i < way->second.size(); ++i) {
      INFO(way->second[i]);
      const bool there = hidden.app.labels().find(way->second[i]).has_value();
      CHECK(there);
      if (there && i + 1 < way->second.size()) hidden.click(way->second[i]);
    }
    hidden.press("Escape");
    hidden.press("Escape");
    hidden.app.document()->history.restart(first);
    hidden.window.request_frames();
    hidden.settle();
  }
  // None of the tables tells of a word that is gone.
  for (const auto& [usage, way] : ways()) CHECK(known.contains(usage));
  for (const auto& [usage, reason] : without_place()) CHECK(known.contains(usage));
}
