#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/plan_share.h"
#include "io/capture/capture.h"

namespace attnscope {

/// The units that a selection is cut into, and the work that they are weighed by.
enum class ShareUnit : uint8_t {
  heads,  ///< heads of a call, each with all of the call's batch items: what their maps cost
  calls,  ///< whole calls, by the same
  copies  ///< whole calls, by the size of their tensors
};

/// A share of a selection.
struct SelectionShare {
  PlanPart part;
  /// Of each call of the whole selection, in its order, the heads that the share has; none of most.
  std::vector<std::vector<int64_t>> heads;

  /// The calls that the share has a part of, with these heads alone.
  std::vector<SelectedCall> of(const std::vector<SelectedCall>& whole) const;
  /// Those calls with all heads of the whole selection, and their places in it.
  std::vector<SelectedCall> touched(const std::vector<SelectedCall>& whole) const;
  std::vector<int64_t> places() const;
};

/// Cuts a selection into shares of about equal work; a map's is head_work(). Deterministic: every
/// process of a job that opens the same capture cuts alike. `asked_for` is what else decides
/// the plan; it goes into the part's plan_hash.
SelectionShare share_selection(const std::vector<SelectedCall>& whole, PlanShare share,
                               ShareUnit unit, const std::string& asked_for);

/// Digest of a plan, without a look at the tensors: what is asked for and the facts of the selected
/// calls.
std::string plan_hash(const std::vector<SelectedCall>& selected, const std::string& asked_for);

}  // namespace attnscope
