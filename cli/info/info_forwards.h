#pragma once

#include <string>
#include <vector>

#include "io/capture/facts/forward_log.h"

namespace attnscope {

/// A line for each kind of forwards: how many a step has, and what they have alike; then those that
/// were partial, and what was refused, by its reason.
std::vector<std::string> forward_lines(const ForwardLog& log);

}  // namespace attnscope
