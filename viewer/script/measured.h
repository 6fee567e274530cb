#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attnscope {

/// All that a window measures, for `print` and `expect`; nothing where it is not known yet.
struct Measured {
  using Number = std::optional<double>;
  Number first_picture_ms, query_ms, frame_ms_max, frame_cpu_ms_max, cpu_ms, frames;
  Number texture_mib, host_mib, queue, level;
  Number atlas_heads, atlas_sketched, atlas_exact, curve_points;
  Number words, word_mass, text_mass, special_mass;
  Number js, js_max, js_rows;
  Number film_frame, film_frames;
  Number range_low, range_high, share_below, share_above;
  Number density, recall, oracle_recall, output_error;
  Number tracks_rows;
  Number pictures = 0;  ///< of the video, that the capture has by now
  bool exact = false;   ///< everything that is seen
  bool playing = false;
  /// How tiles come to their textures: "interop", "staging" or "measuring".
  std::string upload = "staging";
  std::string clipboard;
  /// "open" or "lost", to the machine where the maps lie; "none": they are here.
  std::string connection = "none";
};

}  // namespace attnscope
