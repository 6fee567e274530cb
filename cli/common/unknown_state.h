#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "io/capture/capture.h"

namespace attnscope {

/// That calls do not record what was applied to q and k, with the --rope that would fit all of
/// them; empty where all do.
std::string unknown_state_text(std::span<const SelectedCall> calls);
/// Says so as a note, where it is so.
void tell_unknown_state(std::span<const SelectedCall> calls, const Console& console);
/// The selected calls. Warns of what the selection names and the capture lacks, and tells of calls
/// that do not record what was applied to q and k. Throws as Capture::select() does.
std::vector<SelectedCall> select_and_tell(const Capture& capture, const SelectionOptions& options,
                                          const Console& console);

}  // namespace attnscope
