#include "viewer/script/script_names.h"

#include <algorithm>
#include <array>

#include "core/base/nearest_word.h"
#include "io/pictures/colormap.h"
#include "viewer/script/script_arguments.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 65> kScriptNames{"first_picture_ms",
                                                        "query_ms",
                                                        "frame_ms_max",
                                                        "frame_cpu_ms_max",
                                                        "cpu_ms",
                                                        "frames",
                                                        "texture_mib",
                                                        "host_mib",
                                                        "queue",
                                                        "level",
                                                        "calls",
                                                        "rows",
                                                        "cols",
                                                        "step",
                                                        "layer",
                                                        "chunk",
                                                        "batch",
                                                        "head",
                                                        "atlas_heads",
                                                        "atlas_sketched",
                                                        "atlas_exact",
                                                        "curve_points",
                                                        "words",
                                                        "word_mass",
                                                        "text_mass",
                                                        "special_mass",
                                                        "js",
                                                        "js_max",
                                                        "js_rows",
                                                        "film_frame",
                                                        "film_frames",
                                                        "range_low",
                                                        "range_high",
                                                        "share_below",
                                                        "share_above",
                                                        "density",
                                                        "recall",
                                                        "oracle_recall",
                                                        "output_error",
                                                        "tracks_rows",
                                                        "exact",
                                                        "branch",
                                                        "block",
                                                        "slot",
                                                        "query",
                                                        "reverse",
                                                        "segment",
                                                        "word",
                                                        "product",
                                                        "pool",
                                                        "scale",
                                                        "colormap",
                                                        "order",
                                                        "volume",
                                                        "row_track",
                                                        "key_track",
                                                        "frame_matrix",
                                                        "pins",
                                                        "playing",
                                                        "upload",
                                                        "clipboard",
                                                        "b",
                                                        "difference",
                                                        "mask",
                                                        "connection"};

}  // namespace

std::string_view script_name_text(ScriptName name) {
  return kScriptNames[static_cast<size_t>(name)];
}
bool is_number(ScriptName name) { return name < ScriptName::exact; }

ScriptName parse_script_name(std::string_view what, const std::string& name) {
  const auto found = std::find(kScriptNames.begin(), kScriptNames.end(), name);
  if (found == kScriptNames.end()) {
    throw unknown_name(what, name, {kScriptNames.begin(), kScriptNames.end()});
  }
  return static_cast<ScriptName>(found - kScriptNames.begin());
}

std::vector<std::string> script_name_values(ScriptName name) {
  switch (name) {
    case ScriptName::exact:
      return {"true", "false"};
    case ScriptName::reverse:
      return {"on", "off"};
    case ScriptName::connection:
      return {"none", "open", "lost"};
    case ScriptName::volume:
      return {"off", "max", "emission"};
    case ScriptName::row_track:
      return row_track_names();
    case ScriptName::key_track:
      return key_track_names();
    case ScriptName::frame_matrix:
    case ScriptName::playing:
      return {"on", "off"};
    case ScriptName::product:
      return product_names();
    case ScriptName::pool:
      return pool_names();
    case ScriptName::scale:
      return scale_kind_names();
    case ScriptName::colormap:
      return colormap_names();
    case ScriptName::difference:
      return difference_names();
    case ScriptName::upload:
      return {"interop", "staging", "measuring"};
    default:
      return {};
  }
}

}  // namespace attnscope
