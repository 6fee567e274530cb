#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "cli/common/command.h"

namespace attnscope {

/// The manual page of a command (section 1, in man's own macros): what -h and --help say.
std::string man_page(const CommandParser& command);
/// The program's own: its commands and the topics of `attnscope help`.
std::string man_page(std::span<const Command> commands);

/// Writes attnscope.1 and an attnscope-COMMAND.1 each into a folder, which it makes, in place of
/// those that are there. Throws Error(file).
void write_man_pages(std::span<const Command> commands, const std::filesystem::path& folder);

}  // namespace attnscope
