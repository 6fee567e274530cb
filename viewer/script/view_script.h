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
/// at: the head, the heads' atlas, the picked token or box, who attends to whom, product, colours,
/// order of the tokens, pane and zoom (to a hundredth of an entry). What is beside (side B, masks,
/// words, film, volume, pins) is not in it, nor are tokens that are no box and orders from files;
/// of what is longer than kMostViewScript the longest part, such as a filter of heads, is left out.
std::string view_script(const ViewState& view, const HeadPicker& picker);

/// Reads a script that somebody else may have written: words that change what is looked at, and
/// none that opens, writes, types, presses or waits. Throws Error(usage) "address:LINE: …".
Script parse_view_script(std::string_view text);

}  // namespace attnscope
