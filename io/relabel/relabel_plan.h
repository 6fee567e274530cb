#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/capture/capture.h"
#include "io/relabel/call_labels.h"
#include "io/relabel/relabel_rules.h"

namespace attnscope {

struct RelabelledCall {
  std::filesystem::path file;
  CallLabels before, after;

  /// "branch f1 -> uncond, forward 3 is left out": what differs.
  std::string text() const;
};

struct RelabelPlan {
  std::vector<RelabelledCall> calls;       ///< those that change
  std::optional<std::string> catalogue{};  ///< the new capture.json, where it changes
};

/// The changes that the rules make to a capture that is a folder of its format. Throws Error(usage)
/// where a rule finds nothing, and where two calls would be the same; Error(file) where a call
/// cannot be read.
RelabelPlan plan_relabel(const Capture& capture, const RelabelRules& rules);

}  // namespace attnscope
