#pragma once

#include "cli/query/query_tasks.h"
#include "core/products/query_volumes.h"

namespace attnscope {

/// Marks what a cache had dropped of the tasks' keys (reverse: for which queries the chosen keys
/// were dropped), which films hatch. `averaged`: the volumes are means over some of the tasks, of
/// which what was dropped for all is marked.
void mark_evicted(const QueryTasks& tasks, bool averaged, QueryVolumes& volumes);

}  // namespace attnscope
