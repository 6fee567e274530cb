#pragma once

#include <optional>
#include <string>

#include "viewer/commands/commands.h"

namespace attnscope {

/// A line of the command palette: what choosing it does is one of command, line and fill.
struct PaletteItem {
  std::string title;   ///< what is searched first
  std::string detail;  ///< one line of help
  std::string keys;    ///< the first chord, or the script word; may be empty
  std::optional<CommandId> command = {};
  std::string line = {};  ///< of a script, to be run
  std::string fill = {};  ///< put into the field: more words are needed
  friend bool operator==(const PaletteItem&, const PaletteItem&) = default;
};

}  // namespace attnscope
