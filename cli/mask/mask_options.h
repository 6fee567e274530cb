#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"

namespace attnscope {

/// What `attnscope mask` is asked for.
struct MaskOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  std::vector<std::string> masks;
  std::string out;
  std::string save;
  std::string shard;
  bool alone = false;
  int64_t block = 0;
  bool exact = false;
  bool time = false;
  bool resume = false;
  bool dry_run = false;
  bool json = false;
  bool force = false;
  bool quiet = false;
};

/// Adds them all.
void add_mask_options(CommandParser& command, MaskOptions& options);

}  // namespace attnscope
