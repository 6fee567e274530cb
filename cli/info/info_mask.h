#pragma once

#include <string>

#include "io/capture/call/call_entry.h"

namespace attnscope {

/// The mask's name, and what it keeps where that is no word of everybody's.
std::string mask_text(const CallEntry& call);

}  // namespace attnscope
