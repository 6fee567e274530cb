#pragma once

#include <string>

#include "cli/common/capture_options.h"
#include "io/capture/capture.h"

namespace attnscope {

/// The command line that opens these bare tensors with everything said that was guessed or assumed,
/// as a shell takes it.
std::string full_command(const CaptureOptions& options, const CallEntry& call);

}  // namespace attnscope
