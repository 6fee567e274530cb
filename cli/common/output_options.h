#pragma once

#include "cli/common/parser.h"

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

}  // namespace attnscope
