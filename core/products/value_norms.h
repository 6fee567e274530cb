#pragma once

#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/base/memory_budget.h"
#include "core/problem/attention_problem.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// ‖v_j‖, the L2 norm of the value row of each key in `keys`, for a query head of the problem
/// (which shares its values under grouped queries): [keys]. Sums in double over the row's channels
/// in order. Memory beyond the result stays below 2 MiB. Throws Error(usage) where V was not
/// captured, Error(value) at a NaN or Inf.
std::vector<double> value_norms(const AttentionProblem& problem, int64_t batch, int64_t head,
                                IndexRange keys);

/// Multiplies the weights of each task, values[i] over all keys, by the norms of its keys' value
/// rows. Tasks that share values should follow one another: then these are read once. Working space
/// comes from `budget`.
void weigh_by_values(std::span<const HeadTask> tasks, std::vector<std::vector<float>>& values,
                     MemoryBudget& budget);

}  // namespace attnscope
