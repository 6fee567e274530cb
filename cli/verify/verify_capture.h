#pragma once

#include "cli/common/capture_options.h"
#include "cli/common/console.h"

namespace attnscope {

/// The values of the options of `verify CAPTURE`.
struct VerifyCaptureRequest {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  bool json = false;
  bool strict = false;  ///< where nothing was checked, that is no success
};

/// Compares what the selected calls recorded of their outputs with what follows from Q, K, V and
/// the facts, prints the report on standard output and returns the exit code: 0, or 3 where a call
/// does not agree, and with `strict` where nothing was checked.
int verify_capture(VerifyCaptureRequest request, const Console& console);

}  // namespace attnscope
