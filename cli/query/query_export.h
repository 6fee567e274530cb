#pragma once

#include "cli/common/console.h"
#include "cli/query/query_tasks.h"

namespace attnscope {

/// `query` on an export of weights or rows: the chosen rows as they stand there. Returns the exit
/// code. Throws Error(usage) where the export does not have them or cannot answer.
int query_export(QueryRequest& request, const Console& console);

}  // namespace attnscope
