#include "core/stream/value_check.h"

#include <set>
#include <tuple>

#include "core/base/error.h"

namespace attnscope {

void check_values(std::span<const HeadTask> tasks, std::stop_token stop, bool with_values) {
  // Query heads share key heads under grouped-query attention.
  std::set<std::tuple<const AttentionProblem*, int64_t, int64_t>> seen;
  for (const HeadTask& task : tasks) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const AttentionProblem& problem = *task.problem;
    problem.check_queries_finite(task.batch, task.head, stop);
    const int64_t kv_head = problem.kv_head(task.head);
    if (seen.emplace(&problem, task.batch, kv_head).second) {
      problem.check_keys_finite(task.batch, kv_head, stop);
      if (with_values) problem.check_values_finite(task.batch, kv_head, stop);
    }
  }
}

}  // namespace attnscope
