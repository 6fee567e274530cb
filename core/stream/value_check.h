#pragma once

#include <span>
#include <stop_token>

#include "core/stream/tile_sink.h"

namespace attnscope {

/// Scans the q of every task and the k (and v, where `with_values`) that they use, each once, for
/// NaN and Inf. Throws
/// Error(value) naming tensor, index and value, Error(interrupted) soon after a stop is requested.
void check_values(std::span<const HeadTask> tasks, std::stop_token stop, bool with_values = false);

}  // namespace attnscope
