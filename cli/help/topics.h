#pragma once

#include <span>
#include <string_view>

namespace attnscope {

/// A page of `attnscope help`, of at most 40 lines of 80 columns.
struct HelpTopic {
  std::string_view name, about, text;  ///< the text ends with a line break
};

/// All of them, in the order of the list that `attnscope help` prints.
std::span<const HelpTopic> help_topics();

}  // namespace attnscope
