#include "viewer/tiles/jobs/map_job.h"

#include <algorithm>

namespace attnscope {

std::optional<WorkItem> OnePieceJob::take(HeadCache& head, const JobTools& tools) {
  if (taken_) return std::nullopt;
  WorkItem work = piece(head, tools);
  taken_ = true;
  return [this, work = std::move(work)](WorkerScratch* scratch) -> Completion {
    return [this, take_in = work(scratch)](HeadCache& of, TileStore& store) {
      done_ = true;
      return take_in(of, store);
    };
  };
}

int64_t piece_rows(const AttentionProblem& problem, int64_t keys, double flops) {
  const double row = 2.0 * static_cast<double>(problem.head_dim()) * static_cast<double>(keys);
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(flops / row, 1e9)));
}

}  // namespace attnscope
