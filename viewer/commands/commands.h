#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/commands/key_chord.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The commands that a key, a menu and the palette can ask for.
enum class CommandId : uint8_t {
  pan_up,
  pan_left,
  pan_down,
  pan_right,
  zoom_in,
  zoom_out,
  fit,
  frame_block,
  previous_head,
  next_head,
  previous_layer,
  next_layer,
  previous_step,
  next_step,
  pick_query,
  pin,
  go_to_pin,
  query_left,
  query_right,
  query_up,
  query_down,
  query_earlier,
  query_later,
  smaller_entry,
  larger_entry,
  next_quadrant,
  toggle_pool,
  next_scale,
  next_colormap,
  toggle_whole_range,
  toggle_equal_axes,
  flip_order,
  toggle_histogram,
  toggle_atlas,
  toggle_volume,
  toggle_timeline,
  toggle_words,
  toggle_mask,
  next_row_track,
  next_key_track,
  toggle_frames,
  magnify,
  hold_other,
  difference,
  reverse,
  play,
  play_steps,
  back,
  forward,
  open,
  open_other,
  save_session,
  export_view,
  copy_entry,
  copy_view,
  copy_heads,
  copy_stats,
  save_heads,
  picture,
  figure,
  palette,
  messages,
  help
};

struct ViewCommand {
  CommandId id = CommandId::help;
  std::string_view name;                 ///< "pan-up"
  std::string_view group;                ///< a heading of the help
  std::string_view help;                 ///< one line, no full stop
  std::vector<std::string_view> chords;  ///< as parse_chord() reads them; the first is shown
  bool here = true;                      ///< whether this window can do it
};

/// All of them, in the order of the help.
std::span<const ViewCommand> commands();
const ViewCommand& command_of(CommandId id);
/// True of commands whose effect ends as their key goes up.
bool lasts_while_held(CommandId id);
/// The command on a chord, or nothing.
std::optional<CommandId> command_on(const KeyChord& chord);
/// The keys and the mouse of a pane: of their own where it has the keys, before those of commands.
struct PaneKeys {
  std::string_view keys, help;
};
/// Of the map and its rulers.
std::span<const PaneKeys> map_keys();
/// Of *Heads*, in the order of the help.
std::span<const PaneKeys> heads_keys();
/// Of the mouse over all panes.
std::span<const PaneKeys> mouse_keys();
/// The key map as a Markdown table "| keys | what |", of what this window has.
std::string key_table();

}  // namespace attnscope
