#include "cli/rollout/rollout_layers.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/common/interrupt.h"
#include "core/base/error.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/value_check.h"

namespace attnscope {
namespace {

/// Refuses a call that cannot be a layer beside `first`.
void check_layer(const SelectedCall& selected, const SelectedCall& first) {
  const CallEntry& call = *selected.call;
  const AttentionProblem& problem = *call.problem;
  const auto refuse = [&](const std::string& what) {
    throw usage_error("rollout: " + problem.name() + ": " + what);
  };
  if (call.id.kind == CallKind::cross) {
    refuse(
        "is cross attention: its keys are other tokens than its queries, so influence cannot be "
        "followed from layer to layer; choose --kind joint or self");
  }
  if (!is_normalised(problem.score())) {
    refuse("rows of sigmoid scores do not sum to 1, so they do not share out influence");
  }
  if (selected.batch.size() != 1) {
    refuse(fmt::format("{} batch items are selected: choose one with --batch or --branch",
                       selected.batch.size()));
  }
  if (static_cast<int64_t>(selected.heads.size()) > RolloutLayer::kMostHeads) {
    refuse(fmt::format("{} heads are selected (limit {})", selected.heads.size(),
                       RolloutLayer::kMostHeads));
  }
  const CallEntry& other = *first.call;
  if (call.id.step != other.id.step) {
    refuse(fmt::format("steps {} and {} are selected: choose one with --steps", other.id.step,
                       call.id.step));
  }
  const std::string& branch = branch_of(call.id, selected.batch.front());
  const std::string& first_branch = branch_of(other.id, first.batch.front());
  if (branch != first_branch) {
    refuse("branches " + first_branch + " and " + branch +
           " are selected: choose one with --branch");
  }
  if (problem.num_queries() != other.problem->num_queries() ||
      !(problem.key_tokens() == other.problem->key_tokens())) {
    refuse("has other tokens than " + other.problem->name() + ": choose calls of one kind");
  }
}

}  // namespace

std::vector<RolloutStep> make_rollout_steps(const std::vector<SelectedCall>& calls) {
  std::vector<RolloutStep> layers;
  for (const SelectedCall& selected : calls) {
    check_layer(selected, calls.front());
    if (!layers.empty() && layers.back().call->id.layer == selected.call->id.layer) {
      throw usage_error(
          fmt::format("rollout: layer {} has several calls ({} and {}): choose with "
                      "--kind or --branch",
                      selected.call->id.layer, layers.back().call->problem->name(),
                      selected.call->problem->name()));
    }
    RolloutStep layer{selected.call, {}};
    const AttentionProblem& problem = *selected.call->problem;
    for (int64_t h : selected.heads) {
      layer.tasks.push_back({&problem,
                             selected.batch.front(),
                             h,
                             {0, problem.num_queries()},
                             {},
                             {0, problem.num_keys()}});
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

RowStream plan_rollout_step(const RolloutStep& layer, const TileBackend& backend,
                            const MemoryBudget& budget) {
  const int64_t kept =
      RolloutLayer::bytes(layer.tasks.front().problem->num_queries(), backend.workers());
  return plan_row_stream(layer.tasks, backend, budget, kept, RolloutLayer::kGroupRows);
}

std::vector<double> follow_influence(const std::vector<RolloutStep>& layers,
                                     std::vector<double> influence, RolloutDirection direction,
                                     const TileBackend& backend, MemoryBudget& budget,
                                     const Console& console) {
  const InterruptWatch interrupts(console);
  std::vector<const RolloutStep*> order;
  for (const RolloutStep& layer : layers) {
    check_values(layer.tasks, interrupts.token());
    order.push_back(&layer);
  }
  if (direction == RolloutDirection::to_inputs) std::reverse(order.begin(), order.end());
  constexpr int64_t kSteps = 1000;
  const auto total = static_cast<int64_t>(order.size()) * kSteps;
  const RowStream first = plan_rollout_step(*order.front(), backend, budget);
  Progress progress(console, "rollout", total, static_cast<double>(first.plan.entries) / kSteps,
                    "entries");
  for (size_t l = 0; l < order.size(); ++l) {
    const RowStream stream = plan_rollout_step(*order[l], backend, budget);
    RolloutLayer layer(std::move(influence), static_cast<int64_t>(order[l]->tasks.size()),
                       direction, stream.request, backend.workers(), budget);
    StreamControl control;
    control.stop = interrupts.token();
    control.progress = [&](const StreamProgress& p) {
      progress.update(static_cast<int64_t>(l) * kSteps + p.tiles_done * kSteps / p.tiles_total);
    };
    control.skip = [&](int64_t, IndexRange rows, IndexRange) { return layer.is_idle(rows); };
    StreamingEngine engine(backend, budget);
    if (!engine.run(order[l]->tasks, stream.plan, layer, control)) {
      throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
    }
    influence = layer.next();
  }
  return influence;
}

}  // namespace attnscope
