#pragma once

#include <string>

namespace attnscope {

/// What `info` says of an export or of what an interrupted one left; the exit code.
int print_export_info(const std::string& path, bool json);
/// The same of the journal of a table of metrics (io/metrics).
int print_journal_info(const std::string& path, bool json);

}  // namespace attnscope
