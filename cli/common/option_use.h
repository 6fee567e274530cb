#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/parser.h"

namespace attnscope {

/// Throws Error(usage) where an option was given that nothing is done with beside, or without, the
/// others of the command line. What only the input can tell is the command's to say.
void check_option_use(const CommandParser& command);

/// Of a `file` that is no capture: throws Error(usage) "OPTION: FILE WHY" where an option was given
/// that says which tensors to open, what is true of them or which calls are meant, or one of
/// `more`.
void refuse_capture_options(const CommandParser& command, const std::string& file,
                            std::string_view why, const std::vector<std::string>& more = {});

}  // namespace attnscope
