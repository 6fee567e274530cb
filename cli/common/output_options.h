#pragma once

#include <string>

#include "cli/common/parser.h"
#include "core/base/error.h"

namespace attnscope {

/// Descriptions in a command's help of the options that say how it ends; null: it has none.
struct OutputWords {
  const char* dry_run = nullptr;
  const char* force = "replace FILE if it exists";
  const char* json = "print JSON";
  const char* quiet = "no narration";
};

/// Adds --dry-run --force --json --quiet for members of these names.
template <typename Options>
void add_output_options(CommandParser& command, Options& options, const OutputWords& words) {
  if constexpr (requires { options.dry_run; }) {
    if (words.dry_run != nullptr) command.add_flag("--dry-run", options.dry_run, words.dry_run);
  }
  if constexpr (requires { options.force; }) {
    if (words.force != nullptr) command.add_flag("--force", options.force, words.force);
  }
  command.add_flag("--json", options.json, words.json);
  command.add_flag("--quiet", options.quiet, words.quiet);
}

/// Takes `-o -` of a command that prints a table: standard output has it as CSV, or as --json
/// prints it. `out` is empty then, and `csv` true.
template <typename Options>
void take_standard_output(CommandParser& command, Options& options) {
  command.after_parsing([&options] {
    if (options.out != "-") return;
    std::string given;
    if constexpr (requires { options.shard; }) given = options.shard.empty() ? "" : "--shard";
    if (options.force) given = "--force";
    if constexpr (requires { options.resume; }) given = options.resume ? "--resume" : given;
    if (!given.empty()) {
      throw usage_error(given + ": belongs to -o FILE, and - is standard output");
    }
    options.out.clear();
    options.csv = true;
  });
}

}  // namespace attnscope
