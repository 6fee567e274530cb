#include "viewer/commands/commands.h"

#include <algorithm>
#include <array>

#include "viewer/view/window_place.h"

namespace attnscope {

std::span<const ViewCommand> commands() {
  using enum CommandId;
  static const std::vector<ViewCommand> kCommands{
      {pan_up, "pan-up", "Move", "move up: earlier queries", {"W", "Up"}},
      {pan_left, "pan-left", "Move", "move left: earlier keys", {"A", "Left"}},
      {pan_down, "pan-down", "Move", "move down: later queries", {"S", "Down"}},
      {pan_right, "pan-right", "Move", "move right: later keys", {"D", "Right"}},
      {zoom_in, "zoom-in", "Move", "zoom in", {"+", "="}},
      {zoom_out, "zoom-out", "Move", "zoom out", {"-", "_"}},
      {fit, "fit", "Move", "show the whole map", {"0"}},
      {frame_block, "frame-block", "Move", "the frames in the middle, edge to edge", {"F"}},
      {next_quadrant, "next-quadrant", "Move", "text and video quadrants in turn", {"Tab"}},
      {back, "back", "Move", "one step back", {"Ctrl+Z", "Alt+Left"}},
      {forward, "forward", "Move", "one step forward", {"Ctrl+Shift+Z", "Ctrl+Y", "Alt+Right"}},
      {previous_head, "previous-head", "Choose", "previous head", {"["}},
      {next_head, "next-head", "Choose", "next head", {"]"}},
      {previous_layer, "previous-layer", "Choose", "previous layer", {"{"}},
      {next_layer, "next-layer", "Choose", "next layer", {"}"}},
      {previous_step, "previous-step", "Choose", "previous step", {","}},
      {next_step, "next-step", "Choose", "next step", {"."}},
      {pick_query, "pick-query", "Choose", "pick the token under the mouse, or let it go", {"Q"}},
      {pin, "pin", "Choose", "pin the entry under the mouse, or let that pin go", {"P"}},
      {go_to_pin,
       "go-to-pin",
       "Choose",
       "go to the pin of this number",
       {"1", "2", "3", "4", "5", "6", "7", "8"}},
      {query_left, "query-left", "Choose", "pick the token to the left", {"Shift+Left"}},
      {query_right, "query-right", "Choose", "pick the token to the right", {"Shift+Right"}},
      {query_up, "query-up", "Choose", "pick the token above", {"Shift+Up"}},
      {query_down, "query-down", "Choose", "pick the token below", {"Shift+Down"}},
      {query_earlier, "query-earlier", "Choose", "pick it a latent frame earlier", {"PageUp"}},
      {query_later, "query-later", "Choose", "pick it a latent frame later", {"PageDown"}},
      {smaller_entry,
       "smaller-entry",
       "Choose",
       "the row's largest entry, then the next smaller ones",
       {"J"}},
      {larger_entry, "larger-entry", "Choose", "the row's next larger entry", {"Shift+J"}},
      {reverse, "reverse", "Choose", "who attends to the token", {"R"}},
      {toggle_pool, "toggle-pool", "Look", "largest or mean weight of a texel", {"M"}},
      {next_scale, "next-scale", "Look", "next colour scale: log, linear, sqrt, symlog", {"L"}},
      {next_colormap, "next-colormap", "Look", "next colour map", {"C"}},
      {toggle_whole_range,
       "toggle-whole-range",
       "Look",
       "colours from the least to the greatest value seen, or automatic",
       {"Shift+L"}},
      {toggle_equal_axes,
       "toggle-equal-axes",
       "Look",
       "an entry as high as it is wide, or fill the pane",
       {"E"}},
      {flip_order,
       "flip-order",
       "Look",
       "the matrix in the order of its tokens before: stored, y x t ...",
       {"O"}},
      {toggle_histogram, "toggle-histogram", "Look", "show or hide the histogram", {"H"}},
      {toggle_atlas, "toggle-atlas", "Look", "show or hide the heads of all layers", {"T"}},
      {toggle_volume, "toggle-volume", "Look", "film or volume of the query's row", {"V"}},
      {toggle_timeline, "toggle-timeline", "Look", "show or hide the steps", {"Shift+T"}},
      {toggle_words, "toggle-words", "Look", "show or hide the words of the prompt", {"K"}},
      {toggle_mask, "toggle-mask", "Look", "show or hide the sparse mask's pane", {"Shift+M"}},
      {next_row_track,
       "next-row-track",
       "Look",
       "next number beside the queries: entropy, LSE, text, none",
       {"N"}},
      {next_key_track,
       "next-key-track",
       "Look",
       "show or hide the mass of each key beside the keys",
       {"Shift+N"}},
      {toggle_frames, "toggle-frames", "Look", "show or hide the mass between frames", {"Shift+F"}},
      {magnify, "magnify", "Look", "entries around the mouse; the key: while it is held", {"Z"}},
      {hold_other, "hold-other", "Look", "side B in place of A while it is held", {"B"}},
      {difference, "difference", "Look", "next difference: signed, size, ratio, none", {"X"}},
      {play, "play", "Look", "play the film of the query through time", {"Space"}},
      {play_steps, "play-steps", "Look", "play through the steps, or stop", {"Shift+Space"}},
      {open, "open", "Files", "open a capture or a session", {"Ctrl+O"}, kWindowHasFiles},
      {open_other,
       "open-other",
       "Files",
       "open a second capture, whose heads can be side B",
       {"Ctrl+Shift+O"},
       kWindowHasFiles},
      {save_session, "save-session", "Files", "save the session", {"Ctrl+S"}, kWindowHasFiles},
      {export_view,
       "export",
       "Files",
       "copy the export command of what is seen or selected",
       {"Ctrl+E"}},
      {copy_entry, "copy-entry", "Files", "copy the entry under the mouse", {"Ctrl+C"}},
      {copy_view, "copy-view", "Files", "copy the command that shows this again", {"Ctrl+L"}},
      {copy_heads, "copy-heads", "Files", "copy the selected heads as --pick", {"Ctrl+Shift+C"}},
      {copy_stats,
       "copy-stats",
       "Files",
       "copy the stats command of what is seen or selected",
       {"Ctrl+Shift+E"}},
      {save_heads,
       "save-heads",
       "Files",
       "write the selected heads as a list for --from",
       {"Ctrl+Shift+S"},
       kWindowHasFiles},
      {picture, "picture", "Files", "write the window as a picture", {"F12"}},
      {figure,
       "figure",
       "Files",
       "write the map as a page for print",
       {"Shift+F12"},
       kWindowHasFiles},
      {palette, "palette", "Help", "command palette: search and do", {"Ctrl+P"}},
      {messages, "messages", "Help", "what was told lately: errors, warnings, files", {"Ctrl+M"}},
      {help, "help", "Help", "this help", {"?", "F1"}}};
  return kCommands;
}

const ViewCommand& command_of(CommandId id) {
  const auto all = commands();
  return *std::find_if(all.begin(), all.end(), [id](const ViewCommand& c) { return c.id == id; });
}

bool lasts_while_held(CommandId id) {
  return id == CommandId::magnify || id == CommandId::hold_other;
}

std::optional<CommandId> command_on(const KeyChord& chord) {
  static const std::vector<std::pair<KeyChord, CommandId>> kMap = [] {
    std::vector<std::pair<KeyChord, CommandId>> map;
    for (const ViewCommand& command : commands()) {
      if (!command.here) continue;
      for (const std::string_view text : command.chords) {
        map.emplace_back(parse_chord(text), command.id);
      }
    }
    return map;
  }();
  const KeyChord wanted = normalised(chord);
  for (const auto& [known, id] : kMap) {
    if (known == wanted) return id;
  }
  return std::nullopt;
}

std::span<const PaneKeys> map_keys() {
  static constexpr std::array<PaneKeys, 4> kKeys{
      {{"Escape", "give up a drag, or lead back: from one pane, words, the query"},
       {"drag on a ruler", "choose what is seen of its side"},
       {"click on a ruler", "show a frame, the text or a block"},
       {"double click on a ruler", "show all of its side"}}};
  return kKeys;
}

std::span<const PaneKeys> heads_keys() {
  static constexpr std::array<PaneKeys, 9> kKeys{
      {{"arrows, Home, End", "move a cursor over the heads, which shows them"},
       {"Enter", "keep the head at the cursor"},
       {"B", "make the head at the cursor side B"},
       {"Space", "select the head at the cursor, or no more"},
       {"Escape", "let the cursor go"},
       {"Ctrl+A", "select all heads that the filter shows"},
       {"Ctrl+click", "select a head too, or no more"},
       {"Shift+click", "select the heads from the last clicked one to this"},
       {"drag", "select the heads in a box"}}};
  return kKeys;
}

std::span<const PaneKeys> mouse_keys() {
  static constexpr std::array<PaneKeys, 8> kKeys{
      {{"wheel", "zoom at the cursor; over one large frame: the next moment"},
       {"wheel on a ruler", "zoom its side"},
       {"drag", "move the map, a splitter, the colours' ends"},
       {"middle drag", "move the map, also where a drag paints a mask"},
       {"click", "pick the token under the mouse as query"},
       {"Shift+drag", "pick several, of which the mean is shown"},
       {"right click", "release the query"},
       {"double click", "zoom in; on a pane's header: that pane alone"}}};
  return kKeys;
}

std::string key_table() {
  std::string table = "| keys | what |\n|---|---|\n";
  for (const ViewCommand& command : commands()) {
    if (!command.here) continue;
    table += "| ";
    for (size_t i = 0; i < command.chords.size(); ++i) {
      table += (i == 0 ? "`" : ", `") + chord_text(parse_chord(command.chords[i])) + "`";
    }
    table += " | " + std::string(command.help) + " |\n";
  }
  for (const auto& [keys, help] : map_keys()) {
    table += "| " + std::string(keys) + " | " + std::string(help) + " |\n";
  }
  for (const auto& [keys, help] : heads_keys()) {
    table += "| over *Heads*: " + std::string(keys) + " | " + std::string(help) + " |\n";
  }
  for (const auto& [keys, help] : mouse_keys()) {
    table += "| " + std::string(keys) + " | " + std::string(help) + " |\n";
  }
  return table;
}

}  // namespace attnscope
