#include "core/stream/row_stream.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/budget_error.h"

namespace attnscope {

RowStream plan_row_stream(std::span<const HeadTask> tasks, const TileBackend& backend,
                          const MemoryBudget& budget, int64_t beside_bytes, int64_t least_rows) {
  constexpr int64_t kMostRows = 64;
  constexpr int64_t kFewRows = 16;
  const MemoryRoom room = budget.room(beside_bytes);
  int64_t keys = 0;
  for (const HeadTask& task : tasks) keys = std::max(keys, task.keys.size());
  std::optional<RowStream> best;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (int64_t rows = kMostRows; rows >= least_rows; rows /= 2) {
    RowStream stream;
    stream.request.chunk_rows = rows;
    stream.request.chunk_cols = keys;
    try {
      stream.plan = plan_tiles(tasks, stream.request, backend, room);
    } catch (const BudgetError& error) {
      smallest = std::min(smallest, error.smallest());
      continue;
    }
    if (!best || stream.plan.workers > best->plan.workers) best = stream;
    if (best->plan.workers >= backend.workers() || rows <= kFewRows) return *best;
  }
  if (best) return *best;
  throw BudgetError(room, smallest);
}

int64_t least_row_stream_bytes(std::span<const HeadTask> tasks, const TileBackend& backend,
                               int64_t beside_bytes) {
  try {
    plan_row_stream(tasks, backend, MemoryBudget(0), beside_bytes);
  } catch (const BudgetError& error) {
    return error.smallest() + beside_bytes;
  }
  return beside_bytes;
}

}  // namespace attnscope
