#include "core/products/rollout/rollout_steps.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/stream/row_units.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

/// Refuses a call that cannot be a layer beside `first`.
void check_layer(const CallHeads& call, const CallHeads& first) {
  const AttentionProblem& problem = *call.problem;
  const AttentionProblem& other = *first.problem;
  const auto refuse = [&](const std::string& what) {
    throw usage_error("rollout: " + problem.name() + ": " + what);
  };
  if (problem.id().kind == CallKind::cross) {
    refuse(
        "is cross attention: its keys are other tokens than its queries, so influence cannot be "
        "followed from layer to layer; choose --kind joint or self");
  }
  if (!problem.same_tokens()) {
    refuse(
        "has other keys than queries (those of a cache), so influence cannot be followed from "
        "layer "
        "to layer: convert --stitch joins the chunks of a stream");
  }
  if (problem.id().layer == kNoLayer) {
    refuse("is outside the model's main stack (" + problem.id().place.text() +
           "): choose calls of one stack with --layers or --blocks");
  }
  if (!is_normalised(problem.score())) {
    refuse("rows of score " + score_name(problem.score()) +
           " do not sum to 1, so they do not share out influence");
  }
  if (call.batch.size() != 1) {
    refuse(std::to_string(call.batch.size()) +
           " batch items are selected: choose one with --batch or --branch");
  }
  if (static_cast<int64_t>(call.heads.size()) > RolloutLayer::kMostHeads) {
    refuse(std::to_string(call.heads.size()) + " heads are selected (limit " +
           std::to_string(RolloutLayer::kMostHeads) + ")");
  }
  if (problem.id().step != other.id().step) {
    refuse("steps " + std::to_string(other.id().step) + " and " +
           std::to_string(problem.id().step) + " are selected: choose one with --steps");
  }
  const std::string& branch = branch_of(problem.id(), call.batch.front());
  const std::string& first_branch = branch_of(other.id(), first.batch.front());
  if (branch != first_branch) {
    refuse("branches " + first_branch + " and " + branch +
           " are selected: choose one with --branch");
  }
  if (problem.num_queries() != other.num_queries() ||
      !(problem.key_tokens() == other.key_tokens())) {
    refuse("has other tokens than " + other.name() + ": choose calls of one kind");
  }
}

}  // namespace

std::vector<RolloutStep> make_rollout_steps(std::span<const CallHeads> calls) {
  std::vector<RolloutStep> steps;
  for (const CallHeads& call : calls) {
    check_layer(call, calls.front());
    const AttentionProblem& problem = *call.problem;
    if (!steps.empty() && steps.back().layer() == problem.id().layer) {
      throw usage_error("rollout: layer " + std::to_string(problem.id().layer) +
                        " has several calls (" + steps.back().problem().name() + " and " +
                        problem.name() + "): choose with --kind, --branch or --slots");
    }
    RolloutStep step;
    for (const int64_t head : call.heads) {
      step.tasks.push_back({&problem,
                            call.batch.front(),
                            head,
                            {0, problem.num_queries()},
                            {},
                            {0, problem.num_keys()}});
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<double> start_influence(const ChosenTokens& chosen, int64_t tokens) {
  std::vector<double> influence(static_cast<size_t>(tokens));
  const auto total =
      static_cast<double>(std::accumulate(chosen.counts.begin(), chosen.counts.end(), int64_t{0}));
  for (size_t i = 0; i < chosen.tokens.size(); ++i) {
    influence[static_cast<size_t>(chosen.tokens[i])] =
        static_cast<double>(chosen.counts[i]) / total;
  }
  return influence;
}

namespace {

/// So many pieces of a layer a process, where there are the rows, so that none waits long for the
/// last one; of so many rows, or multiples of that, whatever each process has memory for.
constexpr int64_t kUnitsOfProcess = 8;
constexpr int64_t kUnitRows = 64;
static_assert(kUnitRows % RolloutLayer::kGroupRows == 0);

RowStream plan_pieces(std::span<const HeadTask> pieces, const TileBackend& backend,
                      const MemoryBudget& budget) {
  const int64_t tokens = pieces.front().problem->num_queries();
  return plan_row_stream(pieces, backend, budget, RolloutLayer::bytes(tokens, backend.workers()),
                         RolloutLayer::kGroupRows);
}

/// Runs of rows of the layer's heads, on which the layer's sums do not depend.
std::vector<HeadTask> pieces_of(const RolloutStep& step, int processes) {
  return cut_into_units(step.tasks, kUnitRows, kUnitsOfProcess * processes).tasks;
}

/// Streams the pieces of a layer and adds up the sums of all processes.
void take_layer(std::span<const HeadTask> pieces, const TilePlan& plan, RolloutLayer& layer,
                const TileBackend& backend, MemoryBudget& budget, const RolloutControl& control,
                const std::function<void(double)>& progress) {
  const auto all = std::ssize(pieces);
  std::atomic<int64_t> begun{0};
  StreamControl stream_control;
  stream_control.stop = control.stop;
  stream_control.progress = [&](const StreamProgress& p) {
    const bool alone = control.shared == nullptr;
    progress(alone ? static_cast<double>(p.tiles_done) / static_cast<double>(p.tiles_total)
                   : static_cast<double>(begun.load()) / static_cast<double>(all));
  };
  stream_control.skip = [&](int64_t piece, IndexRange rows, IndexRange) {
    const int64_t first = pieces[static_cast<size_t>(piece)].rows.begin;
    return layer.is_idle({first + rows.begin, first + rows.end});
  };
  if (control.shared != nullptr) {
    control.shared->begin_units(all);
    stream_control.next_task = [&] {
      const std::optional<int64_t> next = control.shared->next_unit();
      begun = next.value_or(all);
      return next;
    };
  }
  if (!StreamingEngine(backend, budget).run(pieces, plan, layer, stream_control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
  if (control.shared != nullptr) control.shared->add_up(layer.sums());
}

}  // namespace

RowStream plan_rollout_step(const RolloutStep& step, const TileBackend& backend,
                            const MemoryBudget& budget) {
  return plan_pieces(step.tasks, backend, budget);
}

int64_t rollout_units(std::span<const RolloutStep> steps, int processes) {
  int64_t units = 0;
  for (const RolloutStep& step : steps) units += std::ssize(pieces_of(step, processes));
  return units;
}

std::vector<double> follow_influence(std::span<const RolloutStep> steps,
                                     std::vector<double> influence, RolloutDirection direction,
                                     const TileBackend& backend, MemoryBudget& budget,
                                     const RolloutControl& control) {
  const bool backwards = direction == RolloutDirection::to_inputs;
  for (size_t done = 0; done < steps.size(); ++done) {
    const RolloutStep& step = steps[backwards ? steps.size() - 1 - done : done];
    const std::vector<HeadTask> pieces =
        control.shared == nullptr ? step.tasks : pieces_of(step, control.shared->processes());
    const RowStream stream = plan_pieces(pieces, backend, budget);
    RolloutLayer layer(std::move(influence), static_cast<int64_t>(step.tasks.size()), direction,
                       stream.request, backend.workers(), budget);
    take_layer(pieces, stream.plan, layer, backend, budget, control, [&](double share) {
      if (control.progress) control.progress(static_cast<double>(done) + share);
    });
    influence = layer.next();
  }
  return influence;
}

}  // namespace attnscope
