#pragma once

#include <string>

namespace attnscope {

/// Prints `info` of an export or of the parts of an interrupted one; returns the exit code.
int print_export_info(const std::string& path, bool json);
/// Prints `info` of the journal of a table of metrics (io/metrics); returns the exit code.
int print_journal_info(const std::string& path, bool json);

}  // namespace attnscope
