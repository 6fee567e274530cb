#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/relabel/call_labels.h"
#include "io/relabel/relabel_rules.h"

namespace attnscope {

/// Applies rules to labels, of calls and of entries of capture.json alike: first the steps are
/// told, of all; then places within steps, branches and layers.
class LabelChange {
 public:
  explicit LabelChange(const RelabelRules& rules);

  /// The step that the rules tell; the place of a forward in it comes later.
  void tell_step(CallLabels& labels);
  /// When all steps are told.
  void tell_others(CallLabels& labels, const std::string& block);
  /// Throws Error(usage) where something that was to become something else was nowhere.
  void require_found() const;

 private:
  int64_t place_in_step(int64_t step, int64_t forward) const;
  void tell_branches(CallLabels& labels);
  void tell_layer(CallLabels& labels, const std::string& block);

  const RelabelRules& rules_;
  std::set<std::string> used_;                 ///< texts of rules that found something
  std::map<int64_t, std::set<int64_t>> told_;  ///< by a step that was told: its forwards
  std::set<std::string> branches_;             ///< that there are
  std::set<std::string> blocks_;               ///< without a layer
  std::set<int64_t> steps_, layers_, forwards_;
};

}  // namespace attnscope
