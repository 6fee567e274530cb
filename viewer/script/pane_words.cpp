#include "viewer/script/pane_words.h"

#include <algorithm>

#include "core/base/error.h"
#include "viewer/view/head_atlas.h"

namespace attnscope {
namespace {

using Words = ScriptArguments;

bool on_or_off(const Words& w, size_t at, std::string_view what) {
  if (w[at] != "on" && w[at] != "off") throw unknown_name(what, w[at], {"on", "off"});
  return w[at] == "on";
}

std::optional<VolumeSlice> make_slice(const Words& w) {
  if (w.size() == 3 && w[2] == "none") return std::nullopt;
  const auto axis = parse_volume_axis(w[2]);
  if (!axis) throw unknown_name("volume slice", w[2], {"t", "y", "x", "none"});
  if (w.size() != 4) throw usage_error("volume slice: expected t N, y N, x N or none");
  const VolumeSlice slice{*axis, whole(w, 3)};
  VolumeLook look;
  look.slice = slice;
  check_volume_look(look);
  return slice;
}

}  // namespace

ScriptWord make_volume_word(const Words& w) {
  VolumeChange change;
  change.shown = true;
  if (w.size() == 2 && (w[1] == "on" || w[1] == "off")) {
    change.shown = w[1] == "on";
  } else if (w.size() == 2) {
    change.mode = parse_volume_mode(w[1]);
    if (!change.mode) {
      throw unknown_name("volume", w[1],
                         {"on", "off", "max", "emission", "threshold", "orbit", "zoom", "slice"});
    }
  } else if (w[1] == "threshold" && w.size() == 3) {
    change.threshold = number(w, 2);
  } else if (w[1] == "zoom" && w.size() == 3) {
    change.zoom = number(w, 2);
  } else if (w[1] == "orbit" && w.size() == 4) {
    change.azimuth = number(w, 2);
    change.elevation = number(w, 3);
  } else if (w[1] == "slice") {
    change.slice = make_slice(w);
  } else {
    throw usage_error(
        "volume: expected on, off, max, emission, threshold V, orbit AZ EL, zoom Z, slice t N, "
        "slice y N, slice x N or slice none");
  }
  check_volume_look(change.of({}));
  return word::ShowVolume{change};
}

ScriptWord make_timeline_word(const Words& w) {
  TimelineChange change;
  change.shown = true;
  if (w.size() == 3 && w[1] == "over") {
    change.over = parse_curve_axis(w[2]);
    if (!change.over) throw unknown_name("timeline over", w[2], curve_axis_names());
  } else if (w.size() == 3 && w[1] == "loop") {
    change.loop = on_or_off(w, 2, "timeline loop");
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
        "timeline: expected on, off, METRIC, none, over steps, over layers, loop on, loop off or "
        "speed N");
  }
  check_timeline_look(change.of({}));
  return word::ShowTimeline{change};
}

ScriptWord make_play_word(const Words& w) { return word::Play{on_or_off(w, 1, "play")}; }

}  // namespace attnscope
