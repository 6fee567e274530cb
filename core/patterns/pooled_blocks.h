#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/mask/mask.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// scale·q̄·k̄ of every pair of blocks: q̄ and k̄ are means over the block's tokens (the last block is
/// ragged), summed in double. [query_blocks, key_blocks] row-major; pairs that the call's own mask
/// leaves empty are −inf. These scores choose blocks as published sparse kernels do; they are no
/// picture of the map.
struct BlockScores {
  int64_t block = 0;
  int64_t query_blocks = 0;
  int64_t key_blocks = 0;
  std::vector<float> scores;
};

/// Bytes that pooled_scores takes, its result included.
int64_t pooled_scores_bytes(const AttentionProblem& problem, int64_t block);
/// Throws Error(interrupted) soon after a stop.
BlockScores pooled_scores(const AttentionProblem& problem, int64_t batch, int64_t head,
                          int64_t block, std::stop_token stop);

/// Keeps, in every row of blocks, the `count` with the largest scores, equal ones by the lower
/// index; never one of score −inf.
BlockMask keep_top_blocks(const BlockScores& scores, int64_t count);
/// Keeps, in every row of blocks, the fewest whose softmax over the row's scores reaches p in
/// (0, 1], the largest first, equal ones by the lower index.
BlockMask keep_block_mass(const BlockScores& scores, double p);

}  // namespace attnscope
