#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/common/picture_options.h"
#include "core/base/memory_budget.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/tile_plan.h"

namespace attnscope {

/// The work that finding the heads of --where would take, before a run's own.
struct WherePlan {
  int64_t heads = 0;  ///< whose numbers are not known
  double flops = 0;
  double seconds = 0;
};

/// The work and resources that a run would take, for --dry-run of every command and for start
/// lines. A value; fields that do not apply to a command are left out.
struct RunPlan {
  std::string command;              ///< "export", "stats" …
  std::optional<int64_t> layers{};  ///< that a rollout passes
  int64_t heads = 0;
  std::optional<int64_t> masks{};
  std::optional<int64_t> rows{};  ///< of all heads together
  /// Of what is written or printed, before any mean: datasets, volumes.
  std::optional<int64_t> payload_bytes{};
  std::string_view payload_word = "payload";
  std::optional<int64_t> file_bytes{};
  bool at_most = false;     ///< payload and file depend on the values
  int64_t free_bytes = -1;  ///< of the disk; −1: not asked, or the system cannot say
  std::optional<PlannedPicture> picture{};
  int64_t entries = 0;         ///< of the maps, that are computed
  double flops = 0;            ///< of the products
  double seconds = -1;         ///< expected, of computation; −1: not estimated
  std::string seconds_note{};  ///< what to add to them in text
  int64_t memory_bytes = 0;
  int64_t budget_bytes = 0;
  int workers = 0;
  /// Where several processes share the run: how many, and into how many units it is cut. Memory and
  /// workers are those of one.
  std::optional<int64_t> processes{}, units{};
  std::optional<TilePlan> tiles{};  ///< of the stream of tiles, where there is one
  std::string how{};                ///< the stream in words
  /// Where --where has numbers to find: the run then has all heads that it may hold for.
  std::optional<WherePlan> where{};
};

/// The plan of a stream of `heads` heads within the budget, which holds what else the run needs.
RunPlan plan_of(std::string command, int64_t heads, const TilePlan& tiles,
                const MemoryBudget& budget);
RunPlan plan_of(std::string command, int64_t heads, const ReductionPlan& reductions,
                const MemoryBudget& budget);

/// "attnscope-plan/1" on standard output: the same fields from every command; or lines for people.
void print_plan(const RunPlan& plan, bool json);

/// " (74.2 GiB free)", or nothing where it is not known.
std::string free_text(const RunPlan& plan);

}  // namespace attnscope
