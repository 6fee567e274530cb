#pragma once

#include "core/products/query_volumes.h"

namespace attnscope {

/// Throws Error(usage) when there is no volume, sizes do not fit the grid or differ, or (where
/// `need_video`) there is no grid.
void check_volumes(const QueryVolumes& volumes, bool need_video);

}  // namespace attnscope
