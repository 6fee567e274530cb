#include "viewer/script/palette_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <span>

#include "core/base/error.h"
#include "viewer/script/script.h"

namespace attnscope {
namespace {

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

std::vector<std::string> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (separators.find(c) == std::string_view::npos) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty() || value < 0) return std::nullopt;
  return value;
}

/// How well an item fits: 0 where a word is not in it, more where words begin its title, or words
/// of it.
int fit_of(const PaletteItem& item, const std::vector<std::string>& words) {
  const std::string title = lower(item.title);
  const std::string all = title + " " + lower(item.detail) + " " + lower(item.keys);
  int fit = 1;
  for (const std::string& word : words) {
    const size_t in_title = title.find(word);
    if (all.find(word) == std::string::npos) return 0;
    if (in_title == std::string::npos) continue;
    const bool begins =
        in_title == 0 || !std::isalnum(static_cast<unsigned char>(title[in_title - 1]));
    fit += in_title == 0 ? 8 : begins ? 4 : 2;
  }
  return fit;
}

/// True of commands that no list can run: they need a held key or the mouse, or open the palette.
bool needs_hand(CommandId id) {
  return id == CommandId::palette || id == CommandId::hold_other || id == CommandId::copy_entry ||
         id == CommandId::pin || id == CommandId::go_to_pin;
}

PaletteItem item_of(const ViewCommand& command) {
  const std::string chord =
      command.chords.empty() ? "" : chord_text(parse_chord(command.chords.front()));
  std::string title(command.name);
  std::replace(title.begin(), title.end(), '-', ' ');
  return {title, std::string(command.help), chord, command.id};
}

PaletteItem item_of(const ScriptWordHelp& word) {
  const std::string usage(word.usage);
  PaletteItem item{usage, std::string(word.help), "script"};
  if (usage.find(' ') == std::string::npos) {
    item.line = usage;
    return item;
  }
  // The words up to the first that stands for others.
  for (const std::string& each : words_of(usage, " ")) {
    if (each.find_first_of("|\"[ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos) break;
    item.fill += each + " ";
  }
  return item;
}

/// The text as a script's line; what it lacks where it begins as one.
void add_line(std::string_view text, std::vector<PaletteItem>& items) {
  const std::string name = std::string(text.substr(0, text.find(' ')));
  const auto& help = script_word_help();
  const auto known = std::find_if(help.begin(), help.end(), [&](const ScriptWordHelp& word) {
    return word.usage.substr(0, word.usage.find(' ')) == name;
  });
  if (known == help.end()) return;
  try {
    const ScriptWord word = parse_script_line(text);
    const auto* const set = std::get_if<word::Set>(&word);
    const bool setting = set != nullptr && set->setting != nullptr;
    items.push_back({one_line(text),
                     std::string(setting ? set->setting->help : known->help),
                     "script",
                     {},
                     std::string(text)});
  } catch (const Error& error) {
    if (text.find(' ') == std::string_view::npos) return;  // perhaps it is only searched for
    items.push_back(
        {std::string(known->usage), one_line(error.what()), "script", {}, {}, std::string(text)});
  }
}

void add_place(std::string_view text, const PaletteContext& context,
               std::vector<PaletteItem>& items) {
  const std::vector<std::string> numbers = words_of(text, " ,()");
  if (context.picker == nullptr || numbers.size() != 3) return;
  for (const std::string& number : numbers) {
    if (!whole_number(number)) return;
  }
  const std::string line = fmt::format("query {} {} {}", numbers[0], numbers[1], numbers[2]);
  try {
    query_at(context.tokens,
             {*whole_number(numbers[0]), *whole_number(numbers[1]), *whole_number(numbers[2])});
    items.push_back({fmt::format("go to token ({}, {}, {})", numbers[0], numbers[1], numbers[2]),
                     "pick it: latent frame, row, column",
                     "query",
                     {},
                     line});
  } catch (const Error& error) {
    items.push_back({one_line(error.what()), "no such place", "query", {}, {}, std::string(text)});
  }
}

void add_head(std::string_view text, const PaletteContext& context,
              std::vector<PaletteItem>& items) {
  try {
    const std::optional<FoundHead> found = find_head(text, context);
    if (!found) return;
    items.push_back(
        {"go to " + context.picker->title(found->head), "show this head", "head", {}, found->line});
  } catch (const Error& error) {
    items.push_back({one_line(error.what()), "no such head", "head", {}, {}, std::string(text)});
  }
}

/// Words of the prompt.
void add_tokens(std::string_view text, const PaletteContext& context,
                std::vector<PaletteItem>& items) {
  if (context.picker == nullptr || context.tokens.grid == nullptr || text.size() < 2) return;
  const std::string wanted = lower(text);
  const std::span<const std::string> words = context.tokens.words;
  for (size_t i = 0; i < words.size() && items.size() < kMostItems; ++i) {
    if (lower(words[i]).find(wanted) == std::string::npos) continue;
    items.push_back({fmt::format("text {} \u00ab{}\u00bb", i, one_line(words[i])),
                     "pick this word of the prompt",
                     "query text",
                     {},
                     fmt::format("query text {}", i)});
  }
}

}  // namespace

std::optional<FoundHead> find_head(std::string_view text, const PaletteContext& context) {
  if (context.picker == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  bool letters = false;
  for (const std::string& word : words_of(lower(text), " .,")) {
    const size_t digits = word.find_first_of("0123456789");
    const std::string name = word.substr(0, digits);
    const std::string_view wanted = numbers.empty() ? "layer" : "head";
    if (!name.empty() && !wanted.starts_with(name)) return std::nullopt;
    letters = letters || !name.empty();
    if (digits == std::string::npos) continue;
    const auto number = whole_number(std::string_view(word).substr(digits));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.size() != 2 || (!letters && text.find('.') == std::string_view::npos)) {
    return std::nullopt;
  }
  const auto layer = std::to_string(numbers[0]), head = std::to_string(numbers[1]);
  const HeadId of_layer = context.picker->select(context.head, HeadAxis::layer, layer);
  return FoundHead{context.picker->select(of_layer, HeadAxis::head, head),
                   fmt::format("head {} {}", layer, head)};
}

std::vector<PaletteItem> palette_items(std::string_view typed, const PaletteContext& context) {
  const size_t first = typed.find_first_not_of(' ');
  const std::string_view text =
      first == std::string_view::npos ? std::string_view() : typed.substr(first);
  std::vector<PaletteItem> items;
  if (!text.empty()) {
    add_place(text, context, items);
    add_head(text, context, items);
    add_line(text, items);
  }
  std::vector<PaletteItem> all;
  // A command that switches comes before the word that says on or off.
  const auto fit_in_list = [](const PaletteItem& item, const std::vector<std::string>& words) {
    const int fit = fit_of(item, words);
    return item.title.ends_with(" on|off") && fit > 1 ? fit / 2 : fit;
  };
  for (const ViewCommand& command : commands()) {
    if (command.here && !needs_hand(command.id)) all.push_back(item_of(command));
  }
  for (const ScriptWordHelp& word : script_word_help()) all.push_back(item_of(word));
  const std::vector<std::string> words = words_of(lower(text), " ");
  std::vector<std::pair<int, const PaletteItem*>> fits;
  for (const PaletteItem& item : all) {
    const int fit = fit_in_list(item, words);
    if (fit > 0) fits.emplace_back(fit, &item);
  }
  std::stable_sort(fits.begin(), fits.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [fit, item] : fits) {
    if (items.size() < kMostItems) items.push_back(*item);
  }
  add_tokens(text, context, items);
  return items;
}

}  // namespace attnscope
