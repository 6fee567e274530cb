#include <fmt/core.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/help.h"
#include "cli/common/option_use.h"
#include "cli/common/report_error.h"
#include "cli/help/complete_words.h"
#include "cli/program_version.h"
#include "core/base/error.h"
#include "core/base/error_kind.h"
#include "core/base/nearest_word.h"
#include "io/helper/ask_helper.h"
#include "io/helper/helper_server.h"
#include "io/helper/questions/helper_questions.h"

namespace attnscope {
namespace {

int fail_usage(std::string_view message) {
  report_error(error_kind(ErrorCode::usage), message);
  return kExitUsage;
}

/// "did you mean …" for a word that no option or subcommand matches; may be empty.
std::string suggestion(const CLI::App& parser, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
  }
  for (const CLI::App* sub : parser.get_subcommands(nullptr)) known.push_back(sub->get_name());
  const std::string plain = word.substr(0, word.find('='));
  const std::string nearest = nearest_word(plain, known);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

/// Words that the parser did not take: always an error, with a suggestion.
int reject_extras(const CLI::App& parser, const std::vector<std::string>& extras) {
  std::string word = extras.front();
  for (const std::string& extra : extras) {
    if (extra.size() > 1 && extra[0] == '-') {
      word = extra;
      break;
    }
  }
  const bool option = word.size() > 1 && word[0] == '-';
  const std::string where = parser.get_parent() == nullptr ? "" : parser.get_name() + ": ";
  const std::string_view what = option                           ? "unknown option"
                                : parser.get_parent() == nullptr ? "unknown subcommand"
                                                                 : "unexpected argument";
  return fail_usage(fmt::format("{}{} {}{} (see attnscope {}--help)", where, what, word,
                                suggestion(parser, word),
                                parser.get_parent() == nullptr ? "" : parser.get_name() + " "));
}

/// An unknown option of the subcommand that a complaint about a missing one would hide; empty where
/// there is none.
std::vector<std::string> unknown_options(const CLI::App& program) {
  const auto parsed = program.get_subcommands();
  if (parsed.empty()) return {};
  std::vector<std::string> extras = parsed.front()->remaining();
  std::erase_if(extras, [](const std::string& word) { return word.size() < 2 || word[0] != '-'; });
  std::erase(extras, "--");
  return extras;
}

/// An option by another name: an older one, or one that other programs have. No help shows it.
struct OtherSpelling {
  std::string_view command;  ///< empty: of all that have the option, and none of that name
  std::string_view spelling, option;
};
constexpr OtherSpelling kOtherSpellings[] = {{"", "--output", "-o"},
                                             {"", "--own-mask", "--mask"},
                                             {"", "--colormap", "--colour-map"},
                                             {"", "--color-map", "--colour-map"},
                                             {"", "--color-scale", "--colour-scale"},
                                             {"stats", "--threshold", "--class-threshold"},
                                             {"synth", "--layers", "--num-layers"},
                                             {"synth", "--steps", "--num-steps"},
                                             {"synth", "--heads", "--num-heads"},
                                             {"synth", "--kinds", "--head-kinds"}};

/// Takes options by their other names, up to a "--". `words` begin with the command's name.
void take_other_spellings(const std::vector<Command>& commands, std::vector<std::string>& words) {
  const auto command = std::find_if(commands.begin(), commands.end(), [&](const Command& each) {
    return !words.empty() && each.parser.name() == words.front();
  });
  if (command == commands.end()) return;
  const auto is_meant = [&](const OtherSpelling& other, const std::string& word) {
    return other.spelling == word && command->parser.has(std::string(other.option)) &&
           (other.command.empty() ? !command->parser.has(word)
                                  : other.command == command->parser.name());
  };
  for (size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const auto* const other =
        std::find_if(std::begin(kOtherSpellings), std::end(kOtherSpellings),
                     [&](const OtherSpelling& each) { return is_meant(each, name); });
    if (other == std::end(kOtherSpellings)) continue;
    const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    words[i] = other->option;
    if (equals != std::string::npos) {
      words.insert(words.begin() + static_cast<int64_t>(++i), value);
    }
  }
}

bool asks_for_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "--version" || word == "-V";
}

/// Options that every command understands alike: they may stand before its name as well.
struct CommonOption {
  std::string_view name;
  bool has_value;
};
constexpr std::array<CommonOption, 5> kCommonOptions{{{"--memory", true},
                                                      {"--threads", true},
                                                      {"--backend", true},
                                                      {"--quiet", false},
                                                      {"--json", false}}};

/// How many words stand before the first subcommand's name, all of them common options with their
/// values; as many as there are where none is named. Throws Error(usage) for an option that belongs
/// behind the name; stops at any other word, which the parser refuses.
size_t leading_options(const std::vector<std::string>& words,
                       const std::vector<std::string>& subcommands) {
  size_t at = 0;
  while (at < words.size()) {
    const std::string& word = words[at];
    const std::string name = word.substr(0, word.find('='));
    const auto option = std::find_if(kCommonOptions.begin(), kCommonOptions.end(),
                                     [&](const CommonOption& o) { return o.name == name; });
    if (option == kCommonOptions.end()) break;
    at += option->has_value && word.size() == name.size() ? 2 : 1;
  }
  const bool is_option = at < words.size() && words[at].size() > 1 && words[at][0] == '-';
  const auto named =
      std::find_first_of(words.begin(), words.end(), subcommands.begin(), subcommands.end());
  if (is_option && !asks_for_help(words[at]) && named != words.end()) {
    throw usage_error(fmt::format(
        "{}: before the subcommand only --memory, --threads, --backend, --quiet and --json may "
        "stand",
        words[at]));
  }
  return std::min(at, words.size());
}

/// The files that the command line names as inputs and output.
AnswerFiles files_named(const CLI::App& parser) {
  AnswerFiles files;
  for (const CLI::Option* option : parser.get_options()) {
    if (option->get_name() == "-o") {
      if (!option->results().empty() && option->results().back() != "-") {
        files.out = option->results().back();
      }
    } else if (option->get_positional()) {
      files.inputs.insert(files.inputs.end(), option->results().begin(), option->results().end());
    }
  }
  for (const char* tensor : {"--q", "--k", "--v"}) {
    const CLI::Option* const option = parser.get_option_no_throw(tensor);
    if (option == nullptr) continue;
    files.inputs.insert(files.inputs.end(), option->results().begin(), option->results().end());
  }
  return files;
}

/// Runs the subcommand that was parsed, or prints the help where none was named.
int run_parsed(const CLI::App& app, const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (!command.parser.app().parsed()) continue;
    std::vector<std::string> extras = command.parser.app().remaining();
    // Words behind a "--" that the subcommand has no use for are the program's.
    const std::vector<std::string> others = app.remaining();
    extras.insert(extras.end(), others.begin(), others.end());
    std::erase(extras, "--");
    if (!extras.empty()) return reject_extras(command.parser.app(), extras);
    set_answer_files(files_named(command.parser.app()));
    command.parser.finish();
    check_option_use(command.parser);
    return command.run();
  }
  if (!app.remaining().empty()) return reject_extras(app, app.remaining());
  write_error_text(app.help());
  return kExitUsage;
}

/// For the scripts of `attnscope completion`.
int print_completions(const std::vector<Command>& commands, std::vector<std::string> words) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.parser.name());
  try {
    // Options that stand before the name are completed behind it.
    const size_t leading = leading_options(words, names);
    if (leading < words.size()) {
      words.erase(words.begin(), words.begin() + static_cast<int64_t>(leading));
    }
  } catch (const Error&) {
    return kExitOk;
  }
  if (!words.empty()) {
    const std::string last = words.back();
    words.pop_back();
    take_other_spellings(commands, words);
    words.push_back(last);
  }
  for (const WordCompletion& each : complete_words(commands, std::move(words))) {
    fmt::print("{}\t{}\n", each.word, each.about);
  }
  return kExitOk;
}

std::vector<Command> add_commands(CLI::App& app) {
  return {add_info_command(app),    add_report_command(app),  add_export_command(app),
          add_query_command(app),   add_stats_command(app),   add_render_command(app),
          add_plot_command(app),    add_mask_command(app),    add_lab_command(app),
          add_diff_command(app),    add_rollout_command(app), add_figure_command(app),
          add_view_command(app),    add_serve_command(app),   add_synth_command(app),
          add_convert_command(app), add_merge_command(app),   add_relabel_command(app),
          add_verify_command(app),  add_bench_command(app),   add_completion_command(app)};
}

int run(int argc, char** argv) {
  if (argc == 2 && argv[1] == kHelperWord) return serve_helper(helper_questions());
  // Also where the program's file has been replaced meanwhile.
  set_helper_program({"/proc/self/exe", {std::string(kHelperWord)}});
  CLI::App app{
      "See what video diffusion transformers look at: exact attention maps from dumped Q "
      "and K,\nstreamed within a memory budget."};
  app.name("attnscope");
  app.set_version_flag("-V,--version", "", "the version, its commit and backends; with --json");
  set_help(app);
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer(
      "Every subcommand has -h, a page with examples, and --help, all its options. --memory,\n"
      "--threads, --backend, --quiet and --json, where it has them, may also stand before its "
      "name.\nattnscope help TOPIC tells of select, tokens, inputs, memory, json and exit.");
  std::vector<Command> commands = add_commands(app);
  commands.push_back(add_help_command(app, commands));
  for (const Command& command : commands) command.parser.app().allow_extras();
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.parser.app().get_name());
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == kCompleteWord) {
    return print_completions(commands, {words.begin() + 1, words.end()});
  }
  const size_t leading = leading_options(words, names);
  if (!words.empty() && leading == words.size()) {
    return fail_usage(fmt::format("{}: which subcommand? (see attnscope --help)", words.back()));
  }
  if (leading < words.size()) {
    if (std::find(names.begin(), names.end(), words[leading]) != names.end()) {
      // The subcommand takes what stood before its name, or says that it does not know it.
      const auto name = words.begin() + static_cast<int64_t>(leading);
      std::rotate(words.begin(), name, name + 1);
    } else if (!asks_for_help(words[leading])) {
      return reject_extras(app, {words[leading]});
    }
  }
  take_other_spellings(commands, words);
  std::reverse(words.begin(), words.end());  // as the parser takes them
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion&) {
    print_version(std::find(argv + 1, argv + argc, std::string_view("--json")) != argv + argc);
    return kExitOk;
  } catch (const CLI::RequiredError& e) {
    const std::vector<std::string> unknown = unknown_options(app);
    if (!unknown.empty()) return reject_extras(*app.get_subcommands().front(), unknown);
    return fail_usage(parse_complaint(app, e));
  } catch (const CLI::ParseError& e) {
    return fail_usage(parse_complaint(app, e));
  }
  return run_parsed(app, commands);
}

/// Left alone, glibc raises the size from which memory goes back to the system when it is freed up
/// to 32 MiB, and keeps what is below in pieces that do not fit the next head: measured 130 MiB
/// beyond the budget.
void give_back_freed_memory() {
  constexpr int kBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kBytes);
}

int run_and_report(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const auto end = std::find(words.begin(), words.end(), "--");
  if (std::find(words.begin(), end, "--json") != end) report_errors_as_json();
  try {
    return run(argc, argv);
  } catch (const Error& e) {
    report_error(e);
    return exit_code_of(e.code());
  } catch (const std::exception& e) {
    report_error(e);
    return kExitFailure;
  }
}

}  // namespace
}  // namespace attnscope

int main(int argc, char** argv) {
  using namespace attnscope;
  // A limit on file sizes is to be an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  give_back_freed_memory();
  const int code = run_and_report(argc, argv);
  if (finish_standard_output()) return code;
  write_error_text("attnscope: standard output cannot be written\n");
  return code == kExitOk ? kExitFailure : code;
}
