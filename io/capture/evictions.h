#pragma once

#include <vector>

#include "core/products/tokens/evicted_keys.h"
#include "io/capture/call/call_entry.h"

namespace attnscope {

/// The keys that a cache had dropped before the call's queries came; none where the call does not
/// tell them (chunks of a stream that were joined do). Reads the mask's spans.
std::vector<EvictedKeys> evictions_of(const CallEntry& call);

}  // namespace attnscope
