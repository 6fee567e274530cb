#include "core/row_stream.h"

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace attnscope {

RowStream plan_row_stream(std::span<const HeadTask> tasks, const TileBackend& backend,
                          int64_t budget_bytes, int64_t least_rows) {
  constexpr int64_t kMostRows = 64;
  constexpr int64_t kFewRows = 16;
  int64_t keys = 0;
  for (const HeadTask& task : tasks) keys = std::max(keys, task.keys.size());
  std::optional<RowStream> best;
  for (int64_t rows = kMostRows; rows >= least_rows; rows /= 2) {
    RowStream stream;
    stream.request.chunk_rows = rows;
    stream.request.chunk_cols = keys;
    try {
      stream.plan = plan_tiles(tasks, stream.request, backend, budget_bytes);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::resource || rows / 2 < least_rows) {
        if (best) return *best;
        throw;
      }
      continue;
    }
    if (!best || stream.plan.workers > best->plan.workers) best = stream;
    if (best->plan.workers >= backend.workers() || rows <= kFewRows) return *best;
  }
  return *best;
}

}  // namespace attnscope
