#pragma once

#include <optional>

#include "core/heads/head_record.h"
#include "io/files/json_types.h"

namespace attnscope {

/// A record as docs/metrics.md has it in JSON: {"step", "layer", "branch", "kind", "batch", "head",
/// "class", the numbers by name (null where undefined) with NAME_stderr where sampled,
/// "class_scores", "sinks", the arrays by name, "nearest" where it was found}.
OrderedJson head_json(const HeadRecord& record);

/// Reads the JSON of head_json() back, without "nearest"; nothing where it is no such record, or a
/// part of one.
std::optional<HeadRecord> parse_head_json(const OrderedJson& json);

}  // namespace attnscope
