#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem/model_place.h"
#include "io/files/json_types.h"

namespace attnscope {

/// The facts of a call that can be told afterwards.
struct CallLabels {
  std::optional<int64_t> step, layer;
  std::vector<std::string> branches;  ///< empty: not told
  CallForward forward = {};

  friend bool operator==(const CallLabels&, const CallLabels&) = default;
};
/// As capture.json has them: "step", "layer", "branches", "forward", "of_step", "call", those that
/// are told.
OrderedJson labels_json(const CallLabels& labels);

}  // namespace attnscope
