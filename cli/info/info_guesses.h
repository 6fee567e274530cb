#pragma once

#include <string>
#include <vector>

#include "cli/common/fitting_presets.h"
#include "io/capture/capture.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Something that nobody recorded or said, and that is taken to be so.
struct Guess {
  std::string fact;   ///< layout, grid, text, scale, kind, step, layer …
  std::string value;  ///< as JSON
  std::string from;   ///< what it was concluded from
};
std::vector<Guess> guesses_of(const CallEntry& call, const std::optional<NamedFolder>& folder);
/// [{"fact", "value", "from"}].
OrderedJson guesses_json(const std::vector<Guess>& guesses);
/// "layout bhsd, from: the longer axis is the sequence".
std::string guess_text(const Guess& guess);

/// The facts that a folder's file names told, as lines; and as JSON, null without a folder.
std::vector<std::string> named_folder_lines(const std::optional<NamedFolder>& folder);
OrderedJson named_folder_json(const std::optional<NamedFolder>& folder);

}  // namespace attnscope
