#pragma once

#include <cstdint>

#include "core/problem/attention_problem.h"

namespace attnscope {

/// The work of computing a head's map, as a number that is the same on every machine: the entries
/// that the mask leaves, counted in the rectangles of 384 × 512 that a stream leaves out where they
/// are empty, times the head's channels; in units of 4096, at least 1. Reads what the mask has to
/// read to tell; throws what Mask::classify throws, Error(resource) for maps beyond 2^62 entries.
int64_t head_work(const AttentionProblem& problem, int64_t batch, int64_t head);

}  // namespace attnscope
