#include "cli/common/parser.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

/// Has the parser's own judgement, but not its words, for values that are no number.
template <typename Number>
CLI::Option& numeric(CLI::Option& option) {
  option.check([](const std::string& text) -> std::string {
    Number number{};
    if (CLI::detail::lexical_cast(text, number)) return "";
    const bool whole = std::is_integral_v<Number>;
    return fmt::format("expected a {} (got {})", whole ? "whole number" : "number", text);
  });
  return option;
}

/// An empty text is nobody's wish: a variable of a script was not set.
CLI::Option& not_empty(CLI::Option& option) {
  option.check([](const std::string& text) -> std::string {
    return text.empty() ? "expected a value (got an empty text)" : "";
  });
  return option;
}

/// The option that a text of the parser begins with; null where it begins otherwise.
const CLI::Option* named_option(const CLI::App& command, const std::string& text) {
  const std::string name = text.substr(0, text.find_first_of(": "));
  for (const CLI::Option* option : command.get_options()) {
    const bool is_named =
        !name.empty() &&
        (option->get_name() == name || option->check_name(name) || option->check_name("--" + name));
    if (is_named) return option;
  }
  return nullptr;
}

/// "--rows A:B", or "CAPTURE" for what has no dashes.
std::string usage_of(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  return option.get_name() + (option.get_items_expected_max() == 0 ? "" : " " + value);
}

/// The complaint about an option that was given too often, or with a wrong number of values.
std::string count_complaint(const CLI::Option& option) {
  const auto given = static_cast<int>(option.results().size());
  if (option.get_items_expected_max() == 0) {
    return fmt::format("{}: takes no value", option.get_name());
  }
  if (given > option.get_items_expected_max()) {
    return fmt::format("{}: expected once (got {})", usage_of(option),
                       fmt::join(option.results(), " and "));
  }
  return fmt::format("{}: its value is missing", usage_of(option));
}

}  // namespace

OptionSetup& OptionSetup::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

OptionSetup& OptionSetup::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

OptionSetup& OptionSetup::required() {
  option_->required();
  return *this;
}

OptionSetup& OptionSetup::delimiter(char between) {
  option_->delimiter(between);
  return *this;
}

OptionSetup& OptionSetup::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

OptionSetup& OptionSetup::in_range(int64_t first, int64_t last) {
  return check([range = CLI::Range(first, last), first, last](const std::string& text) {
    if (range(text).empty()) return std::string();
    return fmt::format("expected {} to {} (got {})", first, last, text);
  });
}

OptionSetup& OptionSetup::words(std::vector<std::string> known) {
  std::string about = option_->get_description();
  if (const size_t place = about.find("{}"); place != std::string::npos) {
    option_->description(about.replace(place, 2, fmt::format("{}", fmt::join(known, ", "))));
  }
  (*words_)[option_] = std::move(known);
  return *this;
}

OptionSetup& OptionSetup::words(const std::vector<std::string_view>& known) {
  return words(std::vector<std::string>(known.begin(), known.end()));
}

OptionSetup& OptionSetup::one_of(const std::vector<std::string>& values) {
  words(values);
  return check([values](const std::string& text) -> std::string {
    if (std::find(values.begin(), values.end(), text) != values.end()) return "";
    const std::string nearest = nearest_word(text, values);
    return fmt::format("expected {} (got {}){}", fmt::join(values, ", "), one_line(text),
                       nearest.empty() ? "" : "; did you mean " + nearest + "?");
  });
}

OptionSetup& OptionSetup::check(std::function<std::string(const std::string&)> complaint) {
  option_->check(std::move(complaint));
  return *this;
}

CommandParser::CommandParser(CLI::App& program, const std::string& name, const std::string& help)
    : app_(program.add_subcommand(name, help)),
      after_(std::make_shared<std::vector<std::function<void()>>>()),
      words_(std::make_shared<OptionWords>()) {}

OptionSetup CommandParser::add_option(const std::string& name, std::string& value,
                                      const std::string& help) {
  return setup(not_empty(*app_->add_option(name, value, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, int& value,
                                      const std::string& help) {
  return setup(numeric<int>(*app_->add_option(name, value, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, int64_t& value,
                                      const std::string& help) {
  return setup(numeric<int64_t>(*app_->add_option(name, value, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, uint64_t& value,
                                      const std::string& help) {
  return setup(numeric<uint64_t>(*app_->add_option(name, value, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, double& value,
                                      const std::string& help) {
  return setup(numeric<double>(*app_->add_option(name, value, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, std::optional<int64_t>& value,
                                      const std::string& help) {
  return setup(numeric<int64_t>(*app_->add_option(name, value, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, std::optional<std::string>& value,
                                      const std::string& help) {
  return setup(not_empty(*app_->add_option(name, value, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, std::vector<std::string>& values,
                                      const std::string& help) {
  return setup(not_empty(*app_->add_option(name, values, help)));
}

OptionSetup CommandParser::add_option(const std::string& name, std::vector<int64_t>& values,
                                      const std::string& help) {
  return setup(numeric<int64_t>(*app_->add_option(name, values, help)));
}

OptionSetup CommandParser::add_flag(const std::string& name, bool& value, const std::string& help) {
  return setup(*app_->add_flag(name, value, help)->disable_flag_override());
}

void CommandParser::footer(const std::string& text) { app_->footer(text); }

void CommandParser::after_parsing(std::function<void()> action) {
  after_->push_back(std::move(action));
}

void CommandParser::finish() const {
  for (const auto& action : *after_) action();
}

size_t CommandParser::count(const std::string& name) const { return app_->count(name); }

bool CommandParser::has(const std::string& name) const {
  return app_->get_option_no_throw(name) != nullptr;
}

std::string CommandParser::given_under(const std::vector<std::string>& headings) const {
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    const bool is_under =
        std::find(headings.begin(), headings.end(), option->get_group()) != headings.end();
    if (is_under && option->count() > 0) return option->get_name();
  }
  return "";
}

std::string CommandParser::name() const { return app_->get_name(); }

std::string CommandParser::about() const { return app_->get_description(); }

std::string CommandParser::footer() const { return app_->get_footer(); }

std::string value_text(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const bool several = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  return option.get_type_name() + (several ? " ..." : "");
}

std::vector<OptionFacts> CommandParser::options() const {
  std::vector<OptionFacts> facts;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    OptionFacts& each = facts.emplace_back();
    for (const std::string& name : option->get_snames()) each.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) each.names.push_back("--" + name);
    each.value = value_text(*option);
    each.heading = option->get_group();
    each.required = option->get_required();
    if (const auto known = words_->find(option); known != words_->end()) each.words = known->second;
    each.about = option->get_description();
    std::replace(each.about.begin(), each.about.end(), '\n', ' ');
  }
  return facts;
}

std::string CommandParser::page() const {
  return app_->get_formatter()->make_help(app_, "attnscope " + name(), CLI::AppFormatMode::Normal);
}

std::string CommandParser::program_page() const {
  const CLI::App* const program = app_->get_parent();
  return program->get_formatter()->make_help(program, program->get_name(),
                                             CLI::AppFormatMode::Normal);
}

std::string parse_complaint(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<CLI::App*> parsed = program.get_subcommands();
  const CLI::App& command = parsed.empty() ? program : *parsed.front();
  const std::string name = parsed.empty() ? "" : command.get_name();
  const std::string text = error.what();
  // Its text is a check's, which is ours.
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return text;
  const CLI::Option* option = named_option(command, text);
  if (option == nullptr) {
    return fmt::format("these words are no command (see attnscope {}{}--help)", name,
                       name.empty() ? "" : " ");
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return count_complaint(*option);
  return fmt::format("{}: {} is missing (see attnscope {} --help)", name, usage_of(*option), name);
}

}  // namespace attnscope
