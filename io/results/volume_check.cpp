#include "io/results/volume_check.h"

#include <fmt/core.h>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {

void check_volumes(const QueryVolumes& volumes, bool need_video) {
  if (volumes.volumes.empty()) throw usage_error("query volumes: there are none");
  const auto size = checked_count(volumes.grid);
  if (!size) throw usage_error("query volumes: the grid is too large");
  if (need_video && *size == 0) throw usage_error("query volumes: there is no token grid");
  for (const QueryVolume& volume : volumes.volumes) {
    if (*size != 0 && static_cast<int64_t>(volume.video.size()) != *size) {
      throw usage_error(fmt::format("query volumes: {}: {} values do not fit a grid of {}",
                                    volume.label, volume.video.size(), *size));
    }
    if (volume.text.size() != volumes.volumes.front().text.size()) {
      throw usage_error(fmt::format("query volumes: {}: {} text tokens, {} in the first volume",
                                    volume.label, volume.text.size(),
                                    volumes.volumes.front().text.size()));
    }
    for (size_t axis = 0; axis < 3 && volume.query; ++axis) {
      const int64_t at = (*volume.query)[axis];
      if (at < 0 || at >= volumes.grid[axis]) {
        throw usage_error(
            fmt::format("query volumes: {}: the query lies outside the grid", volume.label));
      }
    }
  }
}

}  // namespace attnscope
