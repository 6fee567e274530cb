#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "viewer/script/script_arguments.h"
#include "viewer/view/looks/mask_look.h"
#include "viewer/view/looks/tracks_look.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

/// The commands of single panes.
namespace word {
/// `words on`, `words special off` …: the look with a part of it changed.
struct ShowWords {
  std::string part;   ///< "on", "off", "special", "sort", "filter"
  std::string value;  ///< "on", "off", "prompt", "mass", or what words have to hold; empty: all
};
/// Whose film is seen: as chosen_words() reads it; empty: the query's.
struct ChooseWords {
  std::string text;
};
/// `film tint`, `film one`, `film x.gif` …: a part of how the film is shown, or what to do with it.
struct Film {
  std::string part;   ///< "none", "tint", "outline", "contour", "opacity", "all", "one", "latent",
                      ///< "nearest", "linear", "frame", "rate", "loop", "play", "stop", "save"
  std::string path;   ///< of "save"
  double number = 0;  ///< of "opacity", "frame" and "rate" (0: auto); "loop": 1 or 0
};
/// `mask spatial:frames=1`, `mask blocks.npy 64`, `mask off` …
struct ShowMask {
  std::string part;       ///< "on" (the pane), "off" (no mask, no pane), "set", "edit", "unedited",
                          ///< "brush", "lost"
  std::string text = {};  ///< of "set": a pattern, or an absolute path
  int64_t block = 128;    ///< of "set"
  MaskEdit edit = {};     ///< of "edit"
  MaskBrush brush = MaskBrush::off;  ///< of "brush"
  bool lost = false;                 ///< of "lost"
};
/// `track rows entropy`, `track keys mass` …
struct ShowTrack {
  std::optional<RowTrack> rows;  ///< either this
  std::optional<KeyTrack> keys;  ///< or this is to be another
};
/// `order yxt`, `order order.npy rows`: a name of TokenOrder, or a file.
struct ShowOrder {
  std::string text;
  std::optional<action::MapSide> side;  ///< none: both
};
}  // namespace word

/// Of the words of a line, the command's name first. Throw Error(usage) without a place.
word::ShowWords parse_words(ScriptArguments words);
word::ChooseWords parse_word(ScriptArguments words);
word::Film parse_film(ScriptArguments words);
word::ShowMask parse_mask(ScriptArguments words);
word::ShowTrack parse_track(ScriptArguments words);
word::ShowOrder parse_order(ScriptArguments words);

}  // namespace attnscope
