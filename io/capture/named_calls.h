#pragma once

#include <string>
#include <vector>

#include "io/capture/capture.h"
#include "io/capture/name_pattern.h"

namespace attnscope {

/// Opens the files of one call and makes it. Step, layer, branch and kind come from the names, and
/// must agree with what the files say themselves. Heads in files of their own are joined along the
/// head axis; they must follow each other without a gap, and the first number becomes head_offset.
/// Throws Error(file), Error(usage) as build_call.
CallEntry build_named_call(const NamedCall& named, const FactOverrides& overrides,
                           std::vector<std::string>& notes);

/// What the names of these files say together.
NamedFolder summary_of(const NamedFiles& files, bool pattern_given);

/// "3 files: a.txt, b.txt, c.txt"; of many the first five.
std::string first_names(const std::vector<std::string>& names);

}  // namespace attnscope
