// Which rows may be summed by a reference that is known beforehand.
#pragma once

#include "core/problem/attention_problem.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

/// Exponents x = scale·log₂(e)·q·k of a row lie within ± scale·log₂(e)·|q|·max|k| (Cauchy and
/// Schwarz). Where that is at most kHeldExponent the row is held: the reference of its sums is 0
/// from the beginning. This depends on the row and on the head's keys alone.
///
/// Returns the largest |q|² of rows of a query head that are held where the longest key has this
/// |k|²; negative where none is: of other scores than softmax, where the mask may have finite
/// biases, where a key is not finite, and where scale or lengths are such that squares say little.
float most_held_length(const AttentionProblem& problem, int64_t head, float longest_key);

/// True of a sum that a held row with keys can have. Any other means that the bound on the row's
/// exponents did not hold.
bool is_held_sum(double sum, int64_t num_keys);

}  // namespace attnscope::cuda
