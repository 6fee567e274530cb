#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/commands/palette_item.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/query_words.h"

namespace attnscope {

/// The heads and tokens that the palette can find, beside commands and script words.
struct PaletteContext {
  const HeadPicker* picker = nullptr;  ///< null: nothing is open
  HeadId head;                         ///< that is shown
  TokenNames tokens;                   ///< of the side that queries are picked from
};

/// The items that fit what was typed, the best first; everything for an empty text. In this order:
/// a place ("6,15,22" or "6 15 22") and a head ("l12 h3", "12.3"); the text as a line of a script
/// where it is one; commands and script words that have all its words, those that begin with
/// them before others; words of the prompt. At most kMostItems. Pure.
std::vector<PaletteItem> palette_items(std::string_view text, const PaletteContext& context);

/// The head that a text names ("l12 h3", "layer 12 head 3", "12.3"), and the line of a script that
/// shows it; nothing where it names none. Throws Error(usage) for a head that is not there.
struct FoundHead {
  HeadId head;
  std::string line;
};
std::optional<FoundHead> find_head(std::string_view text, const PaletteContext& context);

inline constexpr size_t kMostItems = 200;

}  // namespace attnscope
