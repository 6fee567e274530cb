#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/heads/head_record.h"

namespace attnscope {

/// A record as docs/metrics.md has it in JSON: {"step", "layer", "branch", "kind", "batch", "head",
/// "class", the numbers by name (null where undefined) with NAME_stderr where sampled,
/// "class_scores", "sinks", the arrays by name}.
nlohmann::ordered_json head_json(const HeadRecord& record);

/// What head_json() made the JSON of; nothing where it is no such record, or a part of one.
std::optional<HeadRecord> parse_head_json(const nlohmann::ordered_json& json);

}  // namespace attnscope
