#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/script/palette_search.h"
#include "viewer/settings/settings.h"

namespace attnscope {

/// Where one is, in parts with " · " between them: what leads to the head where there are several
/// steps, branches and the like, the head, the picked token, the part of the map where not all of
/// it is seen: "step 10 · L2 H0 · q 3,5,6 · 448–592". With "who attends" the token is a key: "k".
std::string place_text(const SettingPlace& at);

/// The lines of a script that lead to such a text, typed with "·" or ";" between the parts. A part
/// is a head as the palette finds it, a token ("q 3,5,6", "3 5 6", "k text 4"), a part of the map
/// ("448-592" of queries and keys, or "448-592 x 0-1024"), or a line of a script that only looks.
/// What is not said stays. Throws Error(usage) for what is none of these.
std::vector<std::string> place_lines(std::string_view text, const PaletteContext& context);

/// The state that such lines lead to. Throws Error(usage) for a place that is not there.
ViewState state_at(std::string_view text, const SettingPlace& from, const PaletteContext& context,
                   const ViewLimits& limits);
/// As state_at(), of lines of settings.
ViewState state_after(std::span<const std::string> lines, const SettingPlace& from,
                      const ViewLimits& limits);

}  // namespace attnscope
