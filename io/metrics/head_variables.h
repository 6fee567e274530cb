#pragma once

#include <span>

#include "core/heads/head_record.h"
#include "io/metrics/run_table.h"

namespace attnscope {

using HeadRecords = std::span<const HeadRecord* const>;

/// Adds all that `records` say of their heads: classes, the numbers of docs/metrics.md (NaN where
/// undefined; a standard error where any of them has it), sinks, masses of segments and arrays.
/// There is a record a head of the group, in the order [batch, head]; they have the same arrays.
/// Arrays stand in the order of HeadArray, whatever order they were asked for in.
void add_head_variables(MetricGroup& group, HeadRecords records);

}  // namespace attnscope
