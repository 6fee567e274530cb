#include "cli/common/help.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/parser.h"

namespace attnscope {
namespace {

constexpr size_t kPageLines = 40, kPageColumns = 80;
constexpr size_t kPageExamples = 3;
/// Beginnings of the headings that many commands have: --help has what stands under them, last.
constexpr std::array<std::string_view, 9> kSharedHeadings{
    "Bare tensors",     "A CAPTURE", "Facts",  "Selection",    "Computation",
    "Several machines", "Colours",   "Side B", "The picture's"};

constexpr std::array<std::string_view, 4> kClauseEnds{"; ", ": ", ", ", " ("};

std::string replace_all(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The words of a text in lines of at most `width` columns.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

/// True where a text has closed the brackets that it opened.
bool is_closed(std::string_view text) {
  return std::count(text.begin(), text.end(), '(') == std::count(text.begin(), text.end(), ')');
}

/// The end of the last but one clause of a text; 0 where it has one alone.
size_t end_of_clauses(std::string_view text) {
  for (size_t at = text.size(); at-- > 1;) {
    const std::string_view rest = text.substr(at);
    const bool ends = std::any_of(kClauseEnds.begin(), kClauseEnds.end(),
                                  [&](std::string_view end) { return rest.starts_with(end); });
    if (ends && is_closed(text.substr(0, at))) return at;
  }
  return 0;
}

/// The most clauses of a description that have room in `most` lines, or as many of its words.
std::vector<std::string> brief(const std::string& description, size_t width, size_t most) {
  std::string text = replace_all(description, "\n", " ");
  std::vector<std::string> lines = wrapped(text, width);
  while (lines.size() > most) {
    const size_t end = end_of_clauses(text);
    if (end == 0) break;
    text.resize(end);
    lines = wrapped(text, width);
  }
  lines.resize(std::min(lines.size(), most));
  return lines;
}

/// "-o FILE", "--text-token N|STRING ..."
std::string name_of(const CLI::Option& option) {
  const std::string value = value_text(option);
  return replace_all(option.get_name(false, true), "{false}", "") +
         (value.empty() ? "" : " " + value);
}

/// Where a heading stands in a command's helps: of a query or a rollout its tokens are what it is
/// about.
enum class HeadingRank : uint8_t { subject, own, shared };
HeadingRank rank_of(const std::string& command, const std::string& heading) {
  if (heading == "Positionals") return HeadingRank::subject;
  if (heading == "Queries") {
    const bool is_subject = command == "query" || command == "rollout";
    return is_subject ? HeadingRank::subject : HeadingRank::shared;
  }
  const bool is_shared =
      std::any_of(kSharedHeadings.begin(), kSharedHeadings.end(),
                  [&](std::string_view shared) { return heading.starts_with(shared); });
  return is_shared ? HeadingRank::shared : HeadingRank::own;
}

/// The options below a heading but those that ask for help, of which it says nothing.
std::vector<const CLI::Option*> options_below(const CLI::App& command, const std::string& heading) {
  return command.get_options([&](const CLI::Option* option) {
    return option->nonpositional() && option->get_group() == heading &&
           option != command.get_help_ptr() && option != command.get_help_all_ptr();
  });
}

/// The options that a command does not share with many others.
std::vector<const CLI::Option*> own_options(const CLI::App& command) {
  std::vector<const CLI::Option*> own;
  for (const std::string& heading : in_help_order(command.get_name(), command.get_groups())) {
    if (heading.empty() || rank_of(command.get_name(), heading) == HeadingRank::shared) continue;
    const auto below = options_below(command, heading);
    own.insert(own.end(), below.begin(), below.end());
  }
  return own;
}

std::string option_lines(const std::vector<const CLI::Option*>& options, size_t lines_each) {
  constexpr size_t kMostName = 25;
  size_t column = 0;
  for (const CLI::Option* option : options) {
    const size_t name = name_of(*option).size();
    if (name <= kMostName) column = std::max(column, name);
  }
  std::string text;
  for (const CLI::Option* option : options) {
    const std::string name = name_of(*option);
    size_t room = kPageColumns - 4 - std::max(column, name.size());
    std::string before = fmt::format("  {:<{}}  ", name, column);
    const size_t lines = name.size() > column ? 1 : lines_each;
    for (const std::string& line : brief(option->get_description(), room, lines)) {
      text += before + line + "\n";
      before = std::string(column + 4, ' ');
    }
  }
  return text;
}

/// The heading of a command's examples and the first of them that have room in a line, perhaps
/// without what is said of them.
std::string examples_of(const CLI::App& command) {
  std::string text;
  size_t taken = 0;
  const std::string footer = command.get_footer();
  for (std::string line :
       lines_of(footer.substr(std::min(footer.find("Examples:"), footer.size())))) {
    if (line.size() > kPageColumns) line.resize(line.find_last_not_of(' ', line.find("  #")) + 1);
    if (line.size() > kPageColumns || taken > kPageExamples) continue;
    text += line + "\n";
    ++taken;
  }
  return text.empty() ? text : "\n" + text;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (app->get_parent() != nullptr) {
      return mode == CLI::AppFormatMode::Normal ? page(*app, name) : whole(*app, name);
    }
    // Of the program itself both helps are one: a list of its subcommands.
    return replace_all(CLI::Formatter::make_help(app, std::move(name), CLI::AppFormatMode::Normal),
                       "\n\n\n", "\n\n");
  }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return is_positional ? value_text(*option) : name_of(*option);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_required() && option->nonpositional() ? " (required)" : "";
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text;
    for (const std::string& line :
         wrapped(option->get_description(), kPageColumns - get_column_width())) {
      text += (text.empty() ? "" : "\n") + line;
    }
    return text;
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string value = value_text(*option);
    return option->get_required() ? value : "[" + value + "]";
  }

 private:
  std::string whole(const CLI::App& command, const std::string& name) const {
    std::string text =
        make_description(&command) + make_usage(&command, name) + make_positionals(&command);
    for (const std::string& heading : in_help_order(command.get_name(), command.get_groups())) {
      if (heading.empty() || options_below(command, heading).empty()) continue;
      text += make_group(heading, false, options_below(command, heading));
    }
    text += make_group("Help", false, {command.get_help_ptr(), command.get_help_all_ptr()});
    return replace_all(text + "\n" + make_footer(&command), "\n\n\n", "\n\n");
  }

  std::string page(const CLI::App& command, const std::string& name) const {
    std::string begin = make_usage(&command, name);
    for (const std::string& line : wrapped(command.get_description(), kPageColumns)) {
      begin += line + "\n";
    }
    begin += examples_of(command);
    const std::vector<const CLI::Option*> own = own_options(command);
    if (!own.empty()) begin += "\nOptions:\n";
    const std::string end = fmt::format("\nAll options: {} --help\n", name);
    const auto lines = [](const std::string& text) {
      return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    };
    for (const size_t lines_each : {3, 2}) {
      const std::string text = option_lines(own, lines_each);
      if (lines(begin) + lines(text) + lines(end) <= kPageLines) return begin + text + end;
    }
    return begin + option_lines(own, 1) + end;
  }
};

}  // namespace

std::vector<std::string> in_help_order(const std::string& command,
                                       std::vector<std::string> headings) {
  std::stable_sort(headings.begin(), headings.end(),
                   [&](const std::string& a, const std::string& b) {
                     return rank_of(command, a) < rank_of(command, b);
                   });
  return headings;
}

void set_help(CLI::App& program) {
  program.formatter(std::make_shared<HelpFormatter>());
  program.set_help_flag("-h", "a page: examples, and the options of this command alone");
  program.set_help_all_flag("--help", "all options");
}

}  // namespace attnscope
