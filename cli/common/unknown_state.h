#pragma once

#include <span>
#include <string>

#include "cli/common/console.h"
#include "io/capture/capture.h"

namespace attnscope {

/// That calls do not record what was applied to q and k, with the --rope that would fit all of
/// them; empty where all do.
std::string unknown_state_text(std::span<const SelectedCall> calls);
/// Says so as a note, where it is so.
void tell_unknown_state(std::span<const SelectedCall> calls, const Console& console);

}  // namespace attnscope
