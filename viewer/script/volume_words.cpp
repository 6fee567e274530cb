#include "viewer/script/volume_words.h"

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

using Words = ScriptArguments;

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

VolumeChange parse_volume_words(const Words& w) {
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
  return change;
}

}  // namespace attnscope
