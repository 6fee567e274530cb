#pragma once

#include <nlohmann/json.hpp>

#include "cli/common/capture_options.h"
#include "io/capture/facts/call_facts.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Adds `ignored`, the names that --ignore left out, where there are any: to what tells what it was
/// made of.
inline void add_left_out(OrderedJson& json, const CaptureOptions& options) {
  const auto names = left_out_names(told_facts(options.told));
  if (!names.empty()) json["ignored"] = names;
}

}  // namespace attnscope
