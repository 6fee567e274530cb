#pragma once

#include "cli/common/console.h"
#include "cli/report/report_options.h"

namespace attnscope {

/// Writes the page of two captures: the heads of both, and how far each is from that of its name.
/// Returns the exit code.
int report_pair(ReportRequest request, const Console& console);

}  // namespace attnscope
