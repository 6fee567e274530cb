#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace attnscope {

/// Gives a program two helps, which the subcommands that are added later have, too: -h, a page of
/// at most 40 lines of 80 columns with what a command does, examples and its own options; --help
/// with all options, its own before those that many commands share.
void set_help(CLI::App& program);

/// Headings of a command's options in the order of its helps: what it is about, its own, shared.
std::vector<std::string> in_help_order(const std::string& command,
                                       std::vector<std::string> headings);

}  // namespace attnscope
