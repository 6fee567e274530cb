#pragma once

#include "io/files/json_types.h"
#include "io/metrics/run_table.h"

namespace attnscope {

/// A group of one run as a line of a journal has it: numbers as their bytes in base64, so that not
/// a bit is lost.
OrderedJson group_line(const MetricGroup& group);
/// Reads back the group that group_line() wrote. Throws nlohmann's exceptions or Error(usage) where
/// the JSON is none.
MetricGroup parse_group_line(const OrderedJson& json);

}  // namespace attnscope
