#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/problem/attention_problem.h"

namespace attnscope {

/// Mean over these rows of a head of how many keys the call's own mask lets a row see; rows that
/// see none are in no mean. Nothing where no row sees any.
std::optional<double> mean_keys_seen(const AttentionProblem& problem, int64_t batch, int64_t head,
                                     std::span<const int64_t> rows);

}  // namespace attnscope
