#pragma once

#include <string>

#include "cli/common/capture_options.h"
#include "web/figure/head/figure_choice.h"

namespace attnscope {

/// What `attnscope figure` was asked for.
struct FigureRequest {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  FigureChoice choice;
  std::string out;
  bool alone = false, dry_run = false, force = false, json = false, quiet = false;
};

}  // namespace attnscope
