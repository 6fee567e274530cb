#pragma once

#include "cli/common/console.h"
#include "cli/report/report_options.h"

namespace attnscope {

/// Writes the page of a table of numbers of heads. Returns the exit code.
int report_table(ReportRequest request, const Console& console);

}  // namespace attnscope
