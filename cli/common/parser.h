#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The command line parser's few types that subcommands use. Its library is headers alone and
/// takes half a minute to compile wherever it is included: cli/common/parser.cpp and cli/main.cpp
/// do.
namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace attnscope {

/// The words of options that have some, as words() takes them.
using OptionWords = std::map<const CLI::Option*, std::vector<std::string>>;

/// An option that was just added; every member changes it and gives it back.
/// A handle: the parser owns the option.
class OptionSetup {
 public:
  OptionSetup(CLI::Option& option, OptionWords& words) : option_(&option), words_(&words) {}

  OptionSetup& type_name(const std::string& name);  ///< of its value, as the help shows it
  OptionSetup& group(const std::string& heading);   ///< of the help that it stands under
  OptionSetup& required();
  OptionSetup& delimiter(char between);  ///< of the values in one word
  OptionSetup& one_value_each();         ///< repeatable, but `--name A B` takes A alone
  OptionSetup& in_range(int64_t first, int64_t last);
  /// Words that its value is or begins with, from the table that owns them, for completion, and in
  /// the help in place of "{}": "causal", "window:N", "topk:keep=0.1", "ltx[:HEADS]". Other values
  /// are taken, too.
  OptionSetup& words(std::vector<std::string> known);
  OptionSetup& words(const std::vector<std::string_view>& known);
  /// These words alone: another is refused, with the nearest.
  OptionSetup& one_of(const std::vector<std::string>& values);
  /// `complaint` gives "" for a good value and says what is wrong with another.
  OptionSetup& check(std::function<std::string(const std::string&)> complaint);

 private:
  CLI::Option* option_;
  OptionWords* words_;
};

/// An option or argument, for completion and man pages.
struct OptionFacts {
  std::vector<std::string> names;  ///< "-o", "--layers"; none: an argument
  std::string value;               ///< "FILE ..."; empty: a flag
  std::string heading;             ///< of the help; empty: it stands in none
  std::string about;               ///< line breaks are blanks
  bool required = false;
  std::vector<std::string> words;  ///< as OptionSetup::words() takes them
};

/// "FILE ..." as helps show it; empty for a flag.
std::string value_text(const CLI::Option& option);

/// A subcommand's options. Values are bound by reference and must outlive the parsing; one that
/// was not given keeps what it holds. A handle: the program's parser owns the subcommand.
class CommandParser {
 public:
  CommandParser() = default;
  CommandParser(CLI::App& program, const std::string& name, const std::string& help);

  /// `name` is "--long", "-s", several with commas, or a bare word for a positional argument.
  OptionSetup add_option(const std::string& name, std::string& value, const std::string& help);
  OptionSetup add_option(const std::string& name, int& value, const std::string& help);
  OptionSetup add_option(const std::string& name, int64_t& value, const std::string& help);
  OptionSetup add_option(const std::string& name, uint64_t& value, const std::string& help);
  OptionSetup add_option(const std::string& name, double& value, const std::string& help);
  OptionSetup add_option(const std::string& name, std::optional<int64_t>& value,
                         const std::string& help);
  OptionSetup add_option(const std::string& name, std::optional<std::string>& value,
                         const std::string& help);
  OptionSetup add_option(const std::string& name, std::vector<std::string>& values,
                         const std::string& help);
  OptionSetup add_option(const std::string& name, std::vector<int64_t>& values,
                         const std::string& help);
  /// "--on,!--off" gives both ways.
  OptionSetup add_flag(const std::string& name, bool& value, const std::string& help);
  void footer(const std::string& text);
  /// Adds an action that finish() runs once the command line is read and all its words are known;
  /// it may throw Error(usage).
  void after_parsing(std::function<void()> action);
  void finish() const;

  /// How often the option stood on the command line.
  size_t count(const std::string& name) const;
  /// True where it stood there; false for an option that the command does not have.
  bool is_given(const std::string& name) const { return has(name) && count(name) > 0; }
  bool has(const std::string& name) const;
  /// The first option under these headings of the help that stood there; empty: none did.
  std::string given_under(const std::vector<std::string>& headings) const;
  std::string name() const;
  std::string about() const;
  std::string footer() const;
  std::vector<OptionFacts> options() const;
  /// The text of -h, and the program's own, which lists all subcommands.
  std::string page() const;
  std::string program_page() const;
  CLI::App& app() const { return *app_; }

 private:
  OptionSetup setup(CLI::Option& option) const { return {option, *words_}; }

  CLI::App* app_ = nullptr;
  std::shared_ptr<std::vector<std::function<void()>>> after_;
  std::shared_ptr<OptionWords> words_;
};

/// The complaint about a command line that the parser refused, in our words: the option, the
/// expected value and the given one.
std::string parse_complaint(const CLI::App& program, const CLI::ParseError& error);

}  // namespace attnscope
