#pragma once

#include <cstdint>
#include <string>

#include "cli/common/capture_options.h"

namespace attnscope {

/// What `attnscope figure` was asked for.
struct FigureRequest {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  std::string out, rows, cols;
  int64_t stride = 1;
  bool alone = false, dry_run = false, force = false, json = false, quiet = false;
};

}  // namespace attnscope
