#pragma once

#include <cstdint>
#include <memory>

#include "core/problem/attention_problem.h"

namespace attnscope {

/// One head of bf16 numbers that are normally distributed, the same ones each time. Its tokens are
/// those of up to 32 latent frames, as many as divide them.
std::shared_ptr<const AttentionProblem> random_problem(int64_t tokens, int64_t d, const Mask& mask);

/// A mask that keeps `percent` of the 128 x 128 blocks, in one run a row.
Mask random_block_mask(int64_t tokens, int percent);

}  // namespace attnscope
