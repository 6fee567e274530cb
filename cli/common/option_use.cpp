#include "cli/common/option_use.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/common/capture_options.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// An option that nothing is done with beside one of `beside` (empty: ever), unless one of `unless`
/// was given.
struct OptionWithoutUse {
  std::string_view command;  ///< empty: of all that have the option and one of `unless`
  std::string option;
  std::vector<std::string> beside, unless;
  std::string_view words;  ///< behind the option
};

const std::vector<OptionWithoutUse>& options_without_use() {
  constexpr std::string_view kOfSummary =
      ": is of the summary, which -o FILE does not print (--json does)";
  static const std::vector<OptionWithoutUse> rules{
      {"", "--force", {}, {"-o", "--save", "--config"}, " belongs to -o FILE"},
      {"", "--resume", {}, {"-o"}, " belongs to -o FILE"},
      {"", "--verify-all", {}, {"--resume"}, " belongs to --resume"},
      {"query", "--top", {"-o"}, {"--json"}, kOfSummary},
      {"query", "--sort", {"-o"}, {"--json"}, kOfSummary},
      {"rollout", "--top", {"-o"}, {"--json"}, kOfSummary}};
  return rules;
}

}  // namespace

void check_option_use(const CommandParser& command) {
  const auto any = [&](const std::vector<std::string>& options, auto test) {
    return std::any_of(options.begin(), options.end(), test);
  };
  const auto given = [&](const std::string& option) { return command.is_given(option); };
  const auto known = [&](const std::string& option) { return command.has(option); };
  for (const OptionWithoutUse& rule : options_without_use()) {
    const bool is_of =
        rule.command.empty() ? any(rule.unless, known) : rule.command == command.name();
    if (!is_of || !given(rule.option) || any(rule.unless, given)) continue;
    if (!rule.beside.empty() && !any(rule.beside, given)) continue;
    throw usage_error(fmt::format("{}{}", rule.option, rule.words));
  }
}

void refuse_capture_options(const CommandParser& command, const std::string& file,
                            std::string_view why, const std::vector<std::string>& more) {
  std::string option = command.given_under({kTensorOptions, kFactOptions, kSelectionOptions});
  for (const std::string& each : more) {
    if (option.empty() && command.is_given(each)) option = each;
  }
  if (option.empty()) return;
  throw usage_error(fmt::format("{}: {} {}", option, one_line(file), why));
}

}  // namespace attnscope
