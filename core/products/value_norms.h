#pragma once

#include <vector>

#include "core/base/index_range.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// ‖v_j‖, the L2 norm of the value row of each key in `keys`, for a query head of the problem
/// (which shares its values under grouped queries): [keys]. Sums in double over the row's channels
/// in order. Memory beyond the result stays below 2 MiB. Throws Error(usage) where V was not
/// captured, Error(value) at a NaN or Inf.
std::vector<double> value_norms(const AttentionProblem& problem, int64_t batch, int64_t head,
                                IndexRange keys);

}  // namespace attnscope
