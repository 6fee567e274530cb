#pragma once

#include "io/capture/call/opened_call.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/capture/name_pattern.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// Opens the files of one call. Step, layer, branch and kind come from the names, and must agree
/// with what the files say themselves. Heads in files of their own are joined along the head axis;
/// they must follow each other without a gap, and the first number becomes head_offset. Throws as
/// open_call_file.
OpenedCall open_named_call(const NamedCall& named, const FactOverrides& overrides,
                           const ReadControl& control);

}  // namespace attnscope
