#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/run/head_run_options.h"

namespace attnscope {

/// The values of the options of `attnscope mask`.
struct MaskOptions : HeadRunOptions {
  std::vector<std::string> masks;
  std::string save;
  int64_t block = 0;
  bool exact = false;
  bool time = false;
};

/// Adds them all.
void add_mask_options(CommandParser& command, MaskOptions& options);

}  // namespace attnscope
