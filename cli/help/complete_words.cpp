#include "cli/help/complete_words.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "cli/common/export_maps.h"
#include "cli/help/topics.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/problem/head_name.h"
#include "io/capture/capture.h"
#include "io/metrics/read_table.h"

namespace attnscope {
namespace {

using Completions = std::vector<WordCompletion>;

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

/// The first sentence or clause of a description, for a line beside the word.
std::string brief(const std::string& about) {
  constexpr size_t kMost = 60;
  const std::string text = about.substr(0, about.find_first_of(":;(\n"));
  const std::string whole = text.substr(0, text.find_last_not_of(' ') + 1);
  if (whole.size() <= kMost) return whole;
  return whole.substr(0, whole.find_last_of(' ', kMost));
}

/// Names that a shell would take apart are left out.
bool is_plain(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return c > ' ' && c != 127 &&
           std::string_view("\"'\\$`&|;<>(){}[]*?!#~").find(c) == std::string_view::npos;
  });
}

/// The heads of a capture, or of an export that has maps or numbers. Throws Error.
std::vector<HeadName> heads_of(const std::string& path) {
  std::vector<HeadName> heads;
  if (!is_export_file(path)) {
    const Capture opened = Capture::open(path);
    for (const CallEntry& call : opened.calls()) {
      for (int64_t item = 0; item < call.problem->batch(); ++item) {
        for (int64_t head = 0; head < call.problem->num_heads(); ++head) {
          heads.push_back(head_name(call.id, item, head));
        }
      }
    }
  } else if (read_manifest(path).product == "stats") {
    MemoryBudget budget(int64_t{256} << 20);
    MemoryReservation held;
    const NumberTable table = read_number_table(path, budget, held);
    for (const NumberTable::Line& line : table.lines) heads.push_back(line.head);
  } else {
    const auto maps = open_export_maps(path);
    for (const ExportedMap& map : maps->heads()) heads.push_back(map.name);
  }
  return heads;
}

/// The value of a head for one of the options that select some.
void add_recorded(const HeadName& head, std::string_view option, std::set<std::string>& names,
                  std::set<int64_t>& numbers) {
  const ModelPlace& place = head.place;
  if (option == "--steps" && !place.unrecorded.step) numbers.insert(head.step);
  if (option == "--layers" && head.layer != kNoLayer && !place.unrecorded.layer) {
    numbers.insert(head.layer);
  }
  if (option == "--heads") numbers.insert(head.head);
  if (option == "--batch") numbers.insert(head.batch);
  if (option == "--chunks" && place.has_chunk()) numbers.insert(place.chunk);
  if (option == "--branch") names.insert(head.branch);
  if (option == "--kind") names.insert(head.kind);
  if (option == "--blocks") names.insert(place.block);
  if (option == "--slots") names.insert(place.slot);
}

constexpr std::string_view kOfCapture[] = {"--steps", "--layers", "--heads",
                                           "--batch", "--chunks", "--branch",
                                           "--kind",  "--blocks", "--slots"};

/// The first word of the line that is a file or folder and no option's value.
std::optional<std::string> named_capture(const std::vector<std::string>& words,
                                         const std::vector<OptionFacts>& options) {
  bool is_value = false;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    const bool was_value = is_value;
    is_value = std::any_of(options.begin(), options.end(), [&](const OptionFacts& option) {
      return !option.value.empty() &&
             std::find(option.names.begin(), option.names.end(), word) != option.names.end();
    });
    std::error_code error;
    if (!was_value && !is_option(word) && std::filesystem::exists(word, error)) return word;
  }
  return std::nullopt;
}

std::vector<std::string> recorded_words(const std::string& capture, std::string_view option) {
  std::set<std::string> names;
  std::set<int64_t> numbers;
  try {
    for (const HeadName& head : heads_of(capture)) add_recorded(head, option, names, numbers);
  } catch (const Error&) {
    return {};
  }
  std::vector<std::string> words;
  for (const int64_t number : numbers) words.push_back(std::to_string(number));
  for (const std::string& name : names) {
    if (is_plain(name)) words.push_back(name);
  }
  return words;
}

/// The words that a value is or begins with, of one that the help shows: "ltx" and "ltx:" of
/// "ltx[:HEADS]", "window:" of "window:N".
std::vector<std::string> beginnings(const std::string& shown) {
  const size_t end = shown.find_first_of("[:=");
  if (end == std::string::npos) return {shown};
  if (shown[end] == '[') return {shown.substr(0, end), shown.substr(0, end) + shown[end + 1]};
  const bool is_whole =
      shown[end] == ':' && std::none_of(shown.begin() + static_cast<int64_t>(end), shown.end(),
                                        [](char c) { return c == '=' || (c >= 'A' && c <= 'Z'); });
  return {is_whole ? shown : shown.substr(0, end + 1)};
}

/// The words that continue `text`, which may be a list of which the last is not complete.
Completions continued(const std::vector<std::string>& words, const std::string& text) {
  const size_t comma = text.rfind(',');
  const std::string before = comma == std::string::npos ? "" : text.substr(0, comma + 1);
  const std::string last = text.substr(before.size());
  Completions found;
  for (const std::string& shown : words) {
    for (const std::string& word : beginnings(shown)) {
      if (!word.starts_with(last)) continue;
      // "window:" of "window:N", and of "window:L,R".
      const bool is_new = std::ranges::none_of(
          found, [&](const auto& other) { return other.word == before + word; });
      if (is_new) found.push_back({before + word, ""});
    }
  }
  return found;
}

Completions option_names(const std::vector<OptionFacts>& options, const std::string& text) {
  Completions found;
  for (const OptionFacts& option : options) {
    if (option.heading.empty()) continue;
    for (const std::string& name : option.names) {
      if (name.starts_with(text)) found.push_back({name, brief(option.about)});
    }
  }
  return found;
}

const OptionFacts* find_option(const std::vector<OptionFacts>& options, const std::string& name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const OptionFacts& option) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  });
  return found == options.end() ? nullptr : &*found;
}

/// Completes the value of `option`.
Completions values_of(const std::vector<OptionFacts>& options, const std::string& option,
                      const std::string& text, const std::vector<std::string>& words) {
  if (std::find(std::begin(kOfCapture), std::end(kOfCapture), option) != std::end(kOfCapture)) {
    const auto capture = named_capture(words, options);
    const auto recorded = capture ? recorded_words(*capture, option) : std::vector<std::string>{};
    if (!recorded.empty()) return continued(recorded, text);
  }
  const OptionFacts* const found = find_option(options, option);
  return found == nullptr ? Completions{} : continued(found->words, text);
}

Completions command_names(const std::vector<Command>& commands, const std::string& text) {
  Completions found;
  for (const Command& command : commands) {
    if (command.parser.name().starts_with(text)) {
      found.push_back({command.parser.name(), brief(command.parser.about())});
    }
  }
  return found;
}

/// Completes the word of a command that takes no file.
Completions own_words(const std::vector<Command>& commands, const CommandParser& command,
                      const std::vector<OptionFacts>& options, const std::string& text) {
  Completions found;
  if (command.name() != "help") {
    const auto argument = std::find_if(options.begin(), options.end(), [](const OptionFacts& each) {
      return each.names.empty() && !each.words.empty();
    });
    return argument == options.end() ? found : continued(argument->words, text);
  }
  for (const HelpTopic& topic : help_topics()) {
    if (topic.name.starts_with(text)) {
      found.push_back({std::string(topic.name), std::string(topic.about)});
    }
  }
  const Completions names = command_names(commands, text);
  found.insert(found.end(), names.begin(), names.end());
  return found;
}

}  // namespace

std::vector<WordCompletion> complete_words(const std::vector<Command>& commands,
                                           std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  if (words.size() > 2 && words[words.size() - 2] == "=") {
    words.erase(words.end() - 2);
  } else if (words.size() > 1 && words.back() == "=") {
    words.back().clear();
  }
  std::string text = words.back();
  const auto named = std::find_if(commands.begin(), commands.end(), [&](const Command& each) {
    return words.size() > 1 && each.parser.name() == words.front();
  });
  if (named == commands.end()) {
    if (words.size() > 1) return {};
    return is_option(text) ? option_names({{.names = {"-h", "--help", "-V", "--version"},
                                            .value = "",
                                            .heading = "Options",
                                            .about = "",
                                            .words = {}}},
                                          text)
                           : command_names(commands, text);
  }
  const CommandParser& command = named->parser;
  const std::vector<OptionFacts> options = command.options();
  const size_t equals = text.find('=');
  if (text.starts_with("--") && equals != std::string::npos) {
    Completions found = values_of(options, text.substr(0, equals), text.substr(equals + 1), words);
    for (WordCompletion& each : found) each.word = text.substr(0, equals + 1) + each.word;
    return found;
  }
  const std::string& before = words[words.size() - 2];
  const OptionFacts* const option = words.size() > 2 ? find_option(options, before) : nullptr;
  if (option != nullptr && !option->value.empty()) {
    return values_of(options, before, text, words);
  }
  if (is_option(text) || text == "-") return option_names(options, text);
  return own_words(commands, command, options, text);
}

}  // namespace attnscope
