#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/settings/script_arguments.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// How settings name files. Every member may throw Error.
struct SettingFiles {
  std::function<TokenOrder(const std::string&)> read_order;
  /// The name of a mask's file as the state keeps it.
  std::function<std::string(const std::string&)> whole_mask;
  /// Names as lines write them, of masks and of orders.
  std::function<std::string(const std::string&)> written_mask, written_order;
};

/// A state, and what words of settings mean beside it: heads, tokens and files. Borrows all.
struct SettingPlace {
  const ViewState& state;
  const HeadPicker* picker = nullptr;   ///< finds heads of what is open; null: nothing is
  const HeadPicker* others = nullptr;   ///< finds those that can be side B
  const SettingFiles* files = nullptr;  ///< null: no line names a file
  /// Moments of the film that is seen, where they are known.
  std::optional<int64_t> moments = {};
  /// False: a segment, a plane or a mask that the head cannot have is kept for others.
  bool of_this_head = true;
  bool rounded = false;  ///< parts of the map are written to a hundredth of an entry

  /// The call of the head that is seen. Throws Error(usage) where nothing is open.
  const MapSource& call() const;
};

/// The words of a line that were read, to be done in any state. Throws Error(usage) for what cannot
/// be meant there.
using SettingChange = std::function<Action(const SettingPlace&)>;

/// A part of ViewState: the words that set it, the lines that write it, and what `print` tells.
struct Setting {
  std::string_view name = {};  ///< for `print` and `expect`; empty: these do not tell it
  std::string_view usage;      ///< alternatives are apart by " | " and begin with the same word
  std::string_view help;
  size_t least = 1, most = 1;  ///< words behind the first
  /// The second word: one of these. Empty: any that no other setting of the first word has.
  std::vector<std::string> second = {};
  /// The words that `print` may tell; empty: any.
  std::vector<std::string> told = {};
  bool number = false;      ///< `print` tells a number
  bool in_address = false;  ///< an address may have it: it only looks, and names no file
  std::function<SettingChange(ScriptArguments)> parse = {};
  std::function<std::string(const SettingPlace&)> value = {};
  /// The lines that bring the state's value back, each with its line break, where these are others
  /// than the setting's words and its value; an empty text: the state has none, or other lines
  /// bring it back.
  std::function<std::string(const SettingPlace&)> lines = {};

  std::string_view word() const { return usage.substr(0, usage.find(' ')); }
};

/// All of them, in the order in which their lines are written and read.
const std::vector<Setting>& settings();

struct ParsedSetting {
  const Setting* setting;
  SettingChange change;
};
/// The words of a whole line. Nothing where no setting begins with the first. Throws Error(usage)
/// without a place for what cannot be meant in any state; `more` are second words that the message
/// lists beside those of settings.
std::optional<ParsedSetting> parse_setting(ScriptArguments words,
                                           const std::vector<std::string>& more = {});

/// The lines that lead from `now` to `at.state`, which were done with `now` in the end: those of
/// settings that differ, each with a line break. What the state has by itself, as the scale of a
/// product, is not written. `take`: of which settings; those that it leaves out stay as in `now`.
/// Throws Error(usage) where the limits do not have the state.
std::vector<std::string> setting_lines(const SettingPlace& at, const ViewLimits& limits,
                                       const std::function<bool(const Setting&)>& take,
                                       ViewState& now);

/// The words of a line of a script. Throws Error(usage) for quotes that do not end.
std::vector<std::string> script_line_words(std::string_view line);
/// As script_line_words(); `comment` is where its comment begins, or its end.
std::vector<std::string> script_line_words(std::string_view line, size_t& comment);

/// True where the setting of this word is on: a pane that is shown, a switch.
bool is_setting_on(std::string_view word, const ViewState& state);
/// Switches it.
Action toggled(std::string_view word, const ViewState& state);

}  // namespace attnscope
