#pragma once

#include <optional>
#include <vector>

#include "cli/common/console.h"
#include "cli/query/query_tasks.h"
#include "cluster/team.h"
#include "core/base/memory_budget.h"
#include "core/products/reverse_query.h"
#include "core/stream/tile_backend.h"
#include "io/capture/lse_cache.h"

namespace attnscope {

/// The request and the tasks of a query, and all that it computes them with. Borrows.
struct QueryRun {
  const QueryRequest& request;
  const QueryTasks& tasks;
  const TileBackend& backend;
  MemoryBudget& budget;
  const Console& console;
  std::optional<PlannedPicture> picture = {};  ///< that is drawn of it
  const Team* team = nullptr;  ///< which share the heads, and these tasks are this process's
};

/// The values of every head, and the memory that they were reserved in.
struct QueryValues {
  std::vector<std::vector<float>> values;  ///< [task][token of the sequence shown]
  std::vector<double> lse;  ///< [task] of a single query row, before any domain; else NaN
  MemoryReservation reservation;
  MemoryReservation others;  ///< of values that other processes found
};

/// The chosen query rows of each head, averaged. With --dry-run prints the plan instead and returns
/// nothing. Throws Error(interrupted) when it was stopped.
std::optional<QueryValues> compute_rows(const QueryRun& run);

/// For each head its chosen keys, with the factor of each key's column in their sum.
std::vector<ReverseTask> reverse_tasks(const QueryRequest& request, const QueryTasks& tasks);

/// The columns of the chosen keys: who attends to them. As compute_rows.
std::optional<QueryValues> compute_columns(const QueryRun& run, LseCache& cache);

}  // namespace attnscope
