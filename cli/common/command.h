#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/common/parser.h"
#include "core/base/error.h"

namespace attnscope {

/// Exit codes, the same for every subcommand.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitDifference = 3,
  kExitInterrupted = 4,
};

/// With which a command ends whose work ended so.
constexpr int exit_code_of(ErrorCode code) {
  return code == ErrorCode::usage         ? kExitUsage
         : code == ErrorCode::interrupted ? kExitInterrupted
                                          : kExitFailure;
}

/// A subcommand: its parser and what it does once the command line was read.
struct Command {
  CommandParser parser;
  std::function<int()> run;
};

/// Each adds its subcommand with options and help to `app`.
Command add_info_command(CLI::App& app);
Command add_export_command(CLI::App& app);
Command add_query_command(CLI::App& app);
Command add_stats_command(CLI::App& app);
Command add_plot_command(CLI::App& app);
Command add_mask_command(CLI::App& app);
Command add_lab_command(CLI::App& app);
Command add_diff_command(CLI::App& app);
Command add_rollout_command(CLI::App& app);
Command add_merge_command(CLI::App& app);
Command add_render_command(CLI::App& app);
Command add_figure_command(CLI::App& app);
Command add_report_command(CLI::App& app);
Command add_view_command(CLI::App& app);
Command add_serve_command(CLI::App& app);
Command add_verify_command(CLI::App& app);
Command add_convert_command(CLI::App& app);
Command add_relabel_command(CLI::App& app);
Command add_synth_command(CLI::App& app);
Command add_bench_command(CLI::App& app);
Command add_completion_command(CLI::App& app);
/// `commands` are all that it tells of, and outlive it.
Command add_help_command(CLI::App& app, const std::vector<Command>& commands);

}  // namespace attnscope
