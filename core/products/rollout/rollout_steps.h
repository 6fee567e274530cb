#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/shared_work.h"
#include "core/products/rollout/rollout.h"
#include "core/products/tokens/chosen_tokens.h"
#include "core/stream/row_stream.h"

namespace attnscope {

/// The heads and batch items that were chosen of one call.
struct CallHeads {
  const AttentionProblem* problem = nullptr;
  std::vector<int64_t> batch;
  std::vector<int64_t> heads;
};

/// One layer of a rollout: the chosen heads of one batch item of a call. Never empty.
struct RolloutStep {
  std::vector<HeadTask> tasks;

  const AttentionProblem& problem() const { return *tasks.front().problem; }
  int64_t layer() const { return problem().id().layer; }
};

/// A layer of each call, in their order: ascending by layer. Throws Error(usage) with the reason
/// where calls cannot be followed one after the other: cross attention, several steps, branches,
/// batch items or calls of a layer, different tokens, rows that do not sum to 1.
std::vector<RolloutStep> make_rollout_steps(std::span<const CallHeads> calls);

/// The influence that a rollout starts with: of the chosen tokens, each with its share of all, over
/// `tokens` tokens.
std::vector<double> start_influence(const ChosenTokens& chosen, int64_t tokens);

/// The stream of one layer within what is left of the budget. Throws Error(resource).
RowStream plan_rollout_step(const RolloutStep& step, const TileBackend& backend,
                            const MemoryBudget& budget);

/// Into how many pieces several processes cut the layers.
int64_t rollout_units(std::span<const RolloutStep> steps, int processes);

struct RolloutControl {
  std::stop_token stop;
  /// How many layers are done, with the share of the one at hand; from one thread at a time.
  std::function<void(double layers)> progress;
  /// Those that follow the same influence: each layer's rows are shared out, and everybody has what
  /// all found before the next layer. The result's bits depend on no number of processes. Null:
  /// this process does all.
  SharedWork* shared = nullptr;
};
/// Follows `influence` [tokens] through the layers, from the last to the first (to_inputs) or from
/// the first to the last (to_outputs); see RolloutLayer. Throws Error(interrupted) when it was
/// stopped.
std::vector<double> follow_influence(std::span<const RolloutStep> steps,
                                     std::vector<double> influence, RolloutDirection direction,
                                     const TileBackend& backend, MemoryBudget& budget,
                                     const RolloutControl& control);

}  // namespace attnscope
