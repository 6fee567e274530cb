#pragma once

#include "cli/common/console.h"
#include "cli/report/report_options.h"

namespace attnscope {

/// Writes the page of a capture; of a dry run, says what it would take. Returns the exit code.
int report_capture(ReportRequest request, const Console& console);

}  // namespace attnscope
