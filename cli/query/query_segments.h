#pragma once

#include <vector>

#include "cli/query/query_tasks.h"

namespace attnscope {

/// Whether --segment all was given, and is no segment's name in the selected calls.
bool asks_all_segments(const QueryRequest& request, const Capture& capture);

/// The request for each segment of the selected calls that has a grid, in the order of the token
/// map of the first, with a file of its own: film.png becomes film-NAME.png. Throws Error(usage)
/// where none has, the calls' segments differ, or there is no file to name.
std::vector<QueryRequest> each_segment(const QueryRequest& request, const Capture& capture);

}  // namespace attnscope
