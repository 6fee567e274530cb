#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/nearest_word.h"
#include "viewer/settings/settings.h"

namespace attnscope {

// The parts of settings(), in its order.
std::vector<Setting> head_settings();
std::vector<Setting> map_settings();
std::vector<Setting> pane_settings();
std::vector<Setting> film_and_mask_settings();
std::vector<Setting> comparison_settings();

inline const std::vector<std::string> kOnOff{"on", "off"};
inline std::string on_off(bool on) { return on ? "on" : "off"; }

/// An action that needs nothing but its words.
inline SettingChange always(Action action) {
  return [action = std::move(action)](const SettingPlace&) { return action; };
}

/// A part of a look is changed by `edit`; a pane that is changed is shown.
template <typename Do, typename Look, typename Edit>
SettingChange change_of(Look ViewState::*look, Edit edit) {
  return [look, edit](const SettingPlace& at) -> Action {
    Look changed = at.state.*look;
    if constexpr (requires { changed.shown; }) changed.shown = true;
    edit(changed);
    Do done{changed};
    if constexpr (requires { done.of_this_head; }) done.of_this_head = at.of_this_head;
    return done;
  };
}

/// "0.5 2", "auto", "minmax".
std::string range_text(const ColourRange& range);
/// "Q0 Q1 K0 K1", which parse_rect() reads; `rounded`: to a hundredth of an entry.
std::string rect_text(const MapRect& rect, bool rounded);
/// The four words from `at` on. Throws Error(usage).
MapRect parse_rect(ScriptArguments words, size_t at);

/// A member of a list of names. Throws Error(usage) that lists them.
template <typename Enum>
Enum named(std::string_view what, const std::string& word, std::optional<Enum> parsed,
           const std::vector<std::string>& names) {
  if (!parsed) throw unknown_name(what, word, names);
  return *parsed;
}

}  // namespace attnscope
