#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/common/capture_options.h"

namespace attnscope {

/// The values of the options of `attnscope report`.
struct ReportRequest {
  CaptureOptions capture;
  std::string second;  ///< another capture; empty: none
  SelectionOptions selection;
  RunOptions run;
  std::string out, title, style = "reader", max_size = "8MiB", budget_time;
  int64_t sample = 0;  ///< 0: not given
  bool alone = false, dry_run = false, force = false, json = false, quiet = false;

  int64_t most_bytes() const;
  /// "--max-size 8MiB".
  std::string size_option() const { return "--max-size " + max_size; }
};

void add_report_options(CommandParser& command, ReportRequest& request);

/// Throws Error(usage) where the options cannot be meant, whatever the input.
void check_report_options(const ReportRequest& request);

/// "90s", "2min", "1.5h", "250ms"; a number alone is seconds. Throws Error(usage) naming `option`.
std::chrono::milliseconds parse_time_span(const std::string& text, const std::string& option);

}  // namespace attnscope
