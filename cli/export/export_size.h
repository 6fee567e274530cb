#pragma once

#include <cstdint>

#include "cli/export/export_options.h"
#include "io/export/format/export_plan.h"

namespace attnscope {

/// Bytes of the file that the plan makes; where how many depends on the values, the most.
int64_t planned_bytes(const ExportPlan& plan);

/// Throws Error(resource) where the plan's file would be larger than --max-size, with its size and
/// the most exact --dtype that fits; Error(usage) where --max-size is no size.
void check_max_size(const ExportOptions& options, const ExportPlan& plan);

}  // namespace attnscope
