#include "viewer/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

/// Times that all settings are written at most: one may bring another with it, as a pane that is
/// maximised is shown.
constexpr int kMostPasses = 3;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// A word in double quotes; `at` is behind the first quote, and then behind the last.
std::string read_quoted(std::string_view line, size_t& at) {
  std::string word;
  for (; at < line.size(); ++at) {
    if (line[at] == '"') {
      ++at;
      if (at < line.size() && !is_space(line[at])) {
        throw usage_error("expected a space after the closing quote");
      }
      return word;
    }
    if (line[at] == '\\') {
      ++at;
      if (at == line.size() || (line[at] != '"' && line[at] != '\\')) {
        throw usage_error("a backslash within quotes is followed by \" or \\");
      }
    }
    word += line[at];
  }
  throw usage_error("the closing quote is missing");
}

/// The setting whose second word this is, else the one that takes any; null: none.
const Setting* setting_of(const std::vector<const Setting*>& of_word, const std::string& second) {
  const Setting* open = nullptr;
  for (const Setting* setting : of_word) {
    const auto& words = setting->second;
    if (std::find(words.begin(), words.end(), second) != words.end()) return setting;
    if (words.empty()) open = setting;
  }
  return open;
}

/// The setting's lines, which are its words and its value where it says no others.
std::string lines_of(const Setting& setting, const SettingPlace& at) {
  if (setting.lines) return setting.lines(at);
  const bool keyed = setting.second.size() == 1;
  return fmt::format("{}{} {}\n", setting.word(), keyed ? " " + setting.second.front() : "",
                     setting.value(at));
}

std::string usages(const std::vector<const Setting*>& of_word) {
  std::string text;
  for (const Setting* setting : of_word) {
    text += (text.empty() ? "" : " | ") + std::string(setting->usage);
  }
  return text;
}

/// The lines of `wanted` without those that it shares with `there` at the beginning; all of them
/// where these have more.
std::string_view lines_behind(std::string_view wanted, std::string_view there) {
  std::string_view rest = wanted;
  while (!rest.empty()) {
    const size_t end = rest.find('\n') + 1;
    if (rest.substr(0, end) != there.substr(0, end)) return rest;
    rest.remove_prefix(end);
    there.remove_prefix(end);
  }
  return wanted;
}

}  // namespace

const MapSource& SettingPlace::call() const {
  if (picker == nullptr) throw usage_error("no capture is open");
  return picker->calls()[static_cast<size_t>(state.head.call)];
}

std::optional<ParsedSetting> parse_setting(ScriptArguments words,
                                           const std::vector<std::string>& more) {
  std::vector<const Setting*> of_word;
  for (const Setting& setting : settings()) {
    if (setting.word() == words[0]) of_word.push_back(&setting);
  }
  if (of_word.empty()) return std::nullopt;
  const auto refused = [&](std::string_view expected) {
    const size_t given = words.size() - 1;
    return usage_error(fmt::format("{}: expected {}, got {} {}", words[0], expected, given,
                                   given == 1 ? "word" : "words"));
  };
  if (words.size() == 1) throw refused(usages(of_word));
  const Setting* const setting = setting_of(of_word, words[1]);
  if (setting == nullptr) {
    std::vector<std::string> all;
    for (const Setting* each : of_word) {
      for (const std::string& word : each->second) {
        if (std::find(all.begin(), all.end(), word) == all.end()) all.push_back(word);
      }
    }
    all.insert(all.end(), more.begin(), more.end());
    throw unknown_name(words[0], words[1], all);
  }
  const size_t given = words.size() - 1;
  if (given < setting->least || given > setting->most) throw refused(setting->usage);
  return ParsedSetting{setting, setting->parse(words)};
}

std::vector<std::string> setting_lines(const SettingPlace& at, const ViewLimits& limits,
                                       const std::function<bool(const Setting&)>& take,
                                       ViewState& now) {
  std::vector<std::string> written;
  bool changed = true;
  for (int pass = 0; changed && pass < kMostPasses; ++pass) {
    changed = false;
    for (const Setting& setting : settings()) {
      if (!take(setting)) continue;
      const SettingPlace there{.state = now,
                               .picker = at.picker,
                               .others = at.others,
                               .files = at.files,
                               .of_this_head = at.of_this_head,
                               .rounded = at.rounded};
      const std::string wanted = lines_of(setting, at), present = lines_of(setting, there);
      if (wanted == present) continue;
      std::string_view rest = lines_behind(wanted, present);
      changed = changed || !rest.empty();
      while (!rest.empty()) {
        const size_t end = rest.find('\n');
        const std::vector<std::string> words = script_line_words(rest.substr(0, end));
        written.emplace_back(rest.substr(0, end + 1));
        rest.remove_prefix(end + 1);
        now = apply_action(now, parse_setting(words)->change(there), limits);
      }
    }
  }
  return written;
}

std::vector<std::string> script_line_words(std::string_view line, size_t& comment) {
  std::vector<std::string> words;
  size_t at = 0;
  for (;;) {
    while (at < line.size() && is_space(line[at])) ++at;
    comment = at;
    if (at == line.size() || line[at] == '#') return words;
    if (line[at] == '"') {
      words.push_back(read_quoted(line, ++at));
      continue;
    }
    const size_t begin = at;
    while (at < line.size() && !is_space(line[at])) ++at;
    words.emplace_back(line.substr(begin, at - begin));
  }
}

std::vector<std::string> script_line_words(std::string_view line) {
  size_t comment = 0;
  return script_line_words(line, comment);
}

bool is_setting_on(std::string_view word, const ViewState& state) {
  const auto found = std::find_if(settings().begin(), settings().end(),
                                  [&](const Setting& each) { return each.word() == word; });
  assert(found != settings().end());
  return found->value({.state = state}) != "off";
}

Action toggled(std::string_view word, const ViewState& state) {
  const std::string off = word == "mask" ? "hide" : "off";
  const std::vector<std::string> words{std::string(word), is_setting_on(word, state) ? off : "on"};
  return parse_setting(words)->change({.state = state});
}

}  // namespace attnscope
