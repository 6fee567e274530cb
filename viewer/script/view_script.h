#pragma once

#include <string>
#include <string_view>

#include "viewer/script/script.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The most bytes of a script that an address may have.
inline constexpr size_t kMostViewScript = 2000;

/// The script that shows a view again in a window in which nothing but the first head was looked
/// at: the head, and every setting that an address may have (Setting::in_address), parts of the map
/// to a hundredth of an entry. A segment and a plane that the head does not have, side B, masks,
/// how films and steps are shown, and orders from files are not in it; of what is longer than
/// kMostViewScript the longest lines, such as a filter of heads, are left out.
std::string view_script(const ViewState& shown, const HeadPicker& picker);

/// True of words that change what is looked at, and nothing else.
bool only_looks(const ScriptLine& line);

/// Reads a script that somebody else may have written: words that change what is looked at, and
/// none that opens, writes, types, presses or waits. Throws Error(usage) "address:LINE: …".
Script parse_view_script(std::string_view text);

}  // namespace attnscope
