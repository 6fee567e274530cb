#include "core/stream/row_stream.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace attnscope {

RowStream plan_row_stream(std::span<const HeadTask> tasks, const TileBackend& backend,
                          const MemoryBudget& budget, int64_t beside_bytes, int64_t least_rows) {
  constexpr int64_t kMostRows = 64;
  constexpr int64_t kFewRows = 16;
  const int64_t taken = budget.used() + beside_bytes;
  const int64_t left = std::max(budget.limit() - taken, int64_t{0});
  int64_t keys = 0;
  for (const HeadTask& task : tasks) keys = std::max(keys, task.keys.size());
  std::optional<RowStream> best;
  for (int64_t rows = kMostRows; rows >= least_rows; rows /= 2) {
    RowStream stream;
    stream.request.chunk_rows = rows;
    stream.request.chunk_cols = keys;
    try {
      stream.plan = plan_tiles(tasks, stream.request, backend, left);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::resource || rows / 2 < least_rows) {
        if (best) return *best;
        if (error.code() != ErrorCode::resource || taken == 0) throw;
        throw Error(ErrorCode::resource,
                    std::string(error.what()) + "; " + format_bytes(taken) + " hold other things");
      }
      continue;
    }
    if (!best || stream.plan.workers > best->plan.workers) best = stream;
    if (best->plan.workers >= backend.workers() || rows <= kFewRows) return *best;
  }
  return *best;
}

}  // namespace attnscope
