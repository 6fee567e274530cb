#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace attnscope {

/// Gives a program two helps, which the subcommands that are added later have, too: -h, a page of
/// at most 40 lines of 80 columns with what a command does, examples and its own options; --help
/// with all options.
void set_help(CLI::App& program);

}  // namespace attnscope
