#include "viewer/script/timeline_words.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "viewer/view/heads/head_atlas.h"

namespace attnscope {
namespace {

using Words = ScriptArguments;

bool on_or_off(const Words& w, size_t at, std::string_view what) {
  if (w[at] != "on" && w[at] != "off") throw unknown_name(what, w[at], {"on", "off"});
  return w[at] == "on";
}

}  // namespace

TimelineChange parse_timeline_words(const Words& w) {
  TimelineChange change;
  change.shown = true;
  if (w.size() == 3 && w[1] == "over") {
    change.over = parse_curve_axis(w[2]);
    if (!change.over) throw unknown_name("timeline over", w[2], curve_axis_names());
  } else if (w.size() == 3 && w[1] == "loop") {
    change.loop = on_or_off(w, 2, "timeline loop");
  } else if (w.size() == 3 && w[1] == "follow") {
    change.follow = on_or_off(w, 2, "timeline follow");
  } else if (w.size() == 3 && w[1] == "speed") {
    change.speed = number(w, 2);
  } else if (w.size() == 2 && (w[1] == "on" || w[1] == "off")) {
    change.shown = w[1] == "on";
  } else if (w.size() == 2) {
    std::vector<std::string> names = atlas_metrics();
    names.insert(names.begin(), {"on", "off", "none"});
    if (std::find(names.begin(), names.end(), w[1]) == names.end()) {
      throw unknown_name("timeline", w[1], names);
    }
    change.metric = w[1] == "none" ? "" : w[1];
  } else {
    throw usage_error(
        "timeline: expected on, off, METRIC, none, over steps, over layers, loop on, loop off, "
        "follow on, follow off or speed N");
  }
  check_timeline_look(change.of({}));
  return change;
}

bool parse_play_words(const Words& w) { return on_or_off(w, 1, "play"); }

}  // namespace attnscope
