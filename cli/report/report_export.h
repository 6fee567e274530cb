#pragma once

#include "cli/common/console.h"
#include "cli/report/report_options.h"

namespace attnscope {

/// Writes the page of an export: what is in it and whether it is sound, without numbers. Returns
/// the exit code.
int report_export(const ReportRequest& request, const Console& console);

}  // namespace attnscope
