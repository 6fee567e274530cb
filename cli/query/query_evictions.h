#pragma once

#include "cli/query/query_tasks.h"
#include "core/products/query_volumes.h"

namespace attnscope {

/// Marks what a cache had dropped of the tasks' keys (reverse: for which queries the chosen keys
/// were dropped), which films hatch: pages are planned with it. A volume a task.
void mark_evicted(const QueryTasks& tasks, QueryVolumes& volumes);

}  // namespace attnscope
