#pragma once

#include "cli/query/query_compute.h"
#include "cli/query/query_tasks.h"
#include "cluster/team.h"
#include "core/base/index_range.h"
#include "core/base/memory_budget.h"

namespace attnscope {

// A query whose heads several processes share: one after the other has a run of them.

/// The heads whose values this process finds; none of some where there are fewer than processes.
/// The runs have about equal work, and follow each other in the order of processes.
IndexRange own_heads(const Team& team, const QueryTasks& q);

/// The tasks of these heads. Borrows from `q`.
QueryTasks tasks_of(const QueryTasks& q, IndexRange heads);

/// Gives the values of all processes to the first one, in the order of heads; the others keep none.
/// An exchange. Throws Error(resource) where the first one's budget does not have them.
void collect_values(Team& team, const QueryTasks& q, MemoryBudget& budget, QueryValues& computed);

}  // namespace attnscope
