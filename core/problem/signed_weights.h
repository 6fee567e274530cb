#pragma once

#include <string_view>

#include "core/problem/attention_problem.h"

namespace attnscope {

/// Throws Error(usage) that names the problem where its score has weights of either sign, for which
/// `what` ("an entropy", "stats") is not defined.
void require_one_sign(const AttentionProblem& problem, std::string_view what);

}  // namespace attnscope
