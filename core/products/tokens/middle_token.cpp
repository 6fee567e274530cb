#include "core/products/tokens/middle_token.h"

namespace attnscope {

int64_t middle_token(const TokenGrid& grid, IndexRange there) {
  if (grid.has_grid()) {
    const int64_t middle = grid.index_of({grid.frames() / 2, grid.height() / 2, grid.width() / 2});
    if (there.contains(middle)) return middle;
  }
  const IndexRange video = intersect(grid.video_range(), there);
  const IndexRange all = video.empty() ? there : video;
  return all.begin + all.size() / 2;
}

}  // namespace attnscope
