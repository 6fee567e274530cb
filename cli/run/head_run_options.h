#pragma once

#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/parser.h"

namespace attnscope {

/// Options that commands over heads have in common; each command's own derive from them.
struct HeadRunOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  std::string out;
  bool csv = false;  ///< on standard output, instead of the table for people
  std::string shard;
  bool alone = false;
  bool resume = false;
  bool dry_run = false;
  bool json = false;
  bool force = false;
  bool quiet = false;
};

/// Adds those of the selection and of how to compute, --shard and --alone.
void add_head_run_options(CommandParser& command, HeadRunOptions& options);

}  // namespace attnscope
