#pragma once

#include <span>
#include <vector>

#include "cli/common/console.h"
#include "core/products/rollout.h"
#include "core/stream/row_stream.h"
#include "io/capture/capture.h"

namespace attnscope {

/// One layer of a rollout: its call and the chosen heads of one batch item.
struct RolloutStep {
  const CallEntry* call = nullptr;
  std::vector<HeadTask> tasks;
};

/// The layers of the selection, ascending. Throws Error(usage) with the reason where calls cannot
/// be followed one after the other: cross attention, several steps, branches, batch items or calls
/// of a layer, different tokens, rows that do not sum to 1.
std::vector<RolloutStep> make_rollout_steps(const std::vector<SelectedCall>& calls);

/// The stream of one layer within what is left of the budget. Throws Error(resource).
RowStream plan_rollout_step(const RolloutStep& step, const TileBackend& backend,
                            const MemoryBudget& budget);

/// Follows `influence` [tokens] through the layers, from the last to the first (to_inputs) or from
/// the first to the last (to_outputs); see RolloutLayer. Throws Error(interrupted) on a signal.
std::vector<double> follow_influence(const std::vector<RolloutStep>& steps,
                                     std::vector<double> influence, RolloutDirection direction,
                                     const TileBackend& backend, MemoryBudget& budget,
                                     const Console& console);

}  // namespace attnscope
