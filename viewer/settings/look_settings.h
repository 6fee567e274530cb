#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "viewer/settings/setting_lists.h"

namespace attnscope {

struct SettingHeading {
  std::string_view name, usage, help;
};

/// A member of a look: of words behind `key`, or right behind the command's name where that is
/// empty. `names`: the words that it can be; empty: any. `read` makes a value of the words from a
/// place on, and throws Error(usage).
template <typename Do, typename Look, typename Value>
Setting look_part(const SettingHeading& heading, const std::string& key, Look ViewState::*look,
                  Value Look::*member, const std::vector<std::string>& names,
                  std::function<Value(ScriptArguments, size_t)> read,
                  std::function<std::string(const Value&)> text) {
  const size_t at_word = key.empty() ? 1 : 2;
  Setting setting{.name = heading.name, .usage = heading.usage, .help = heading.help};
  setting.least = setting.most = at_word;
  setting.second = key.empty() ? names : std::vector<std::string>{key};
  setting.told = names;
  setting.in_address = true;
  setting.parse = [=](ScriptArguments w) -> SettingChange {
    return change_of<Do>(
        look, [member, value = read(w, at_word)](Look& changed) { changed.*member = value; });
  };
  setting.value = [=](const SettingPlace& at) { return text(at.state.*look.*member); };
  return setting;
}

/// Throws Error(usage) for a word that is none of these.
inline void check_word(ScriptArguments w, size_t at, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), w[at]) != names.end()) return;
  throw unknown_name(joined(w.first(at), 0), w[at], names);
}

/// True for the first of two words.
template <typename Do, typename Look>
Setting look_switch(const SettingHeading& heading, const std::string& key, Look ViewState::*look,
                    bool Look::*member, const std::vector<std::string>& words = kOnOff) {
  return look_part<Do, Look, bool>(
      heading, key, look, member, words,
      [words](ScriptArguments w, size_t at) {
        check_word(w, at, words);
        return w[at] == words[0];
      },
      [words](bool on) { return words[on ? 0 : 1]; });
}

/// `check` throws Error(usage) for a look that cannot be.
template <typename Do, typename Look, typename Number>
Setting look_number(const SettingHeading& heading, const std::string& key, Look ViewState::*look,
                    Number Look::*member, void (*check)(const Look&)) {
  Setting setting = look_part<Do, Look, Number>(
      heading, key, look, member, {},
      [=](ScriptArguments w, size_t at) {
        Look probe;
        probe.*member = static_cast<Number>(number(w, at));
        check(probe);
        return probe.*member;
      },
      [](Number value) { return fmt::format("{}", value); });
  setting.number = true;
  return setting;
}

template <typename Do, typename Look, typename Enum>
Setting look_choice(const SettingHeading& heading, const std::string& key, Look ViewState::*look,
                    Enum Look::*member, const std::vector<std::string>& names,
                    std::optional<Enum> (*parse)(std::string_view),
                    std::string_view (*text)(Enum)) {
  return look_part<Do, Look, Enum>(
      heading, key, look, member, names,
      [=](ScriptArguments w, size_t at) {
        check_word(w, at, names);
        return *parse(w[at]);
      },
      [text](Enum value) { return std::string(text(value)); });
}

/// A text that is empty where the word is `none`: one of the names, or without these all words to
/// the line's end. `check` throws Error(usage) for a text that cannot be.
template <typename Do, typename Look>
Setting look_text(
    const SettingHeading& heading, const std::string& key, Look ViewState::*look,
    std::string Look::*member, const std::string& none, std::vector<std::string> names = {},
    std::function<void(const std::string&)> check = [](const std::string&) {}) {
  constexpr size_t kAnyWords = 1000;
  const bool open = names.empty();
  if (!open) names.insert(names.begin(), none);
  const auto told = [none](const std::string& text) { return text_word(text, none); };
  Setting setting = look_part<Do, Look, std::string>(
      heading, key, look, member, names,
      [=](ScriptArguments w, size_t at) {
        if (!open) check_word(w, at, names);
        const std::string text = word_text(joined(w, at), none);
        check(text);
        return text;
      },
      told);
  if (open) setting.most = kAnyWords;
  setting.lines = [=](const SettingPlace& at) {
    return std::string(heading.usage.substr(0, heading.usage.find(' ') + 1)) +
           (key.empty() ? "" : key + " ") + script_quoted(told(at.state.*look.*member)) + "\n";
  };
  return setting;
}

}  // namespace attnscope
