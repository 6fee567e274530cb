#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// Numbers and words that `print` and `expect` know.
enum class ScriptName : uint8_t {
  first_picture_ms,
  query_ms,
  frame_ms_max,
  frame_cpu_ms_max,
  cpu_ms,
  frames,
  texture_mib,
  host_mib,
  queue,
  level,
  calls,
  rows,
  cols,
  step,
  layer,
  chunk,
  batch,
  head,
  atlas_heads,
  atlas_sketched,
  atlas_exact,
  curve_points,
  words,
  word_mass,
  text_mass,
  special_mass,
  js,
  js_max,
  js_rows,
  film_frame,
  film_frames,
  range_low,
  range_high,
  share_below,
  share_above,
  density,
  recall,
  oracle_recall,
  output_error,
  tracks_rows,
  exact,
  branch,
  block,
  slot,
  query,
  reverse,
  segment,
  word,
  product,
  pool,
  scale,
  colormap,
  order,
  volume,
  row_track,
  key_track,
  frame_matrix,
  pins,
  playing,
  upload,
  clipboard,
  b,
  difference,
  mask,
  connection,  ///< to the machine where the maps lie
};
std::string_view script_name_text(ScriptName name);
/// True where its value is a number (these names come first in ScriptName), false for a word.
bool is_number(ScriptName name);

/// The name that `print` and `expect` are given. Throws Error(usage) that begins with `what` and
/// lists the names.
ScriptName parse_script_name(std::string_view what, const std::string& name);
/// The words that a name can have as its value; empty: any.
std::vector<std::string> script_name_values(ScriptName name);

}  // namespace attnscope
