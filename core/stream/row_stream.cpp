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
  const int64_t taken = budget.used() + beside_bytes;
  const int64_t left = std::max(budget.limit() - taken, int64_t{0});
  int64_t keys = 0;
  for (const HeadTask& task : tasks) keys = std::max(keys, task.keys.size());
  std::optional<RowStream> best;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (int64_t rows = kMostRows; rows >= least_rows; rows /= 2) {
    RowStream stream;
    stream.request.chunk_rows = rows;
    stream.request.chunk_cols = keys;
    try {
      stream.plan = plan_tiles(tasks, stream.request, backend, left);
    } catch (const BudgetError& error) {
      smallest = std::min(smallest, error.smallest());
      continue;
    }
    if (!best || stream.plan.workers > best->plan.workers) best = stream;
    if (best->plan.workers >= backend.workers() || rows <= kFewRows) return *best;
  }
  if (best) return *best;
  throw BudgetError(budget.limit(), smallest + taken);
}

}  // namespace attnscope
