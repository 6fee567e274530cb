#pragma once

#include <cstdint>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The token that is shown before anything was chosen: the one in the middle of the video's grid,
/// or of what is `there`, which must not be empty, of the video or at all.
int64_t middle_token(const TokenGrid& grid, IndexRange there);

}  // namespace attnscope
