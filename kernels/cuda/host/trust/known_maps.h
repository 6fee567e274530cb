#pragma once

#include "core/base/dtype.h"
#include "core/problem/attention_problem.h"

/// Small calls of tensors of one type that have what may go wrong: parts of tiles, of segments of
/// keys and of chunks of channels, masks, and rows of both kinds. Those of 16 bits are held by
/// their lengths (kHeldExponent), or are loud: too long for that. Values are random, the same every
/// time.
namespace attnscope::cuda {

/// More than a tile of rows, than one segment of keys and than one chunk of channels, all of them
/// ragged, under a mask. The second tile's rows are loud. Has V.
AttentionProblem ragged_map(DType dtype);
/// Less than a tile of rows, and one ragged chunk of channels. All rows are held.
AttentionProblem narrow_map(DType dtype);
/// A map of narrow_map's size whose rows are all loud.
AttentionProblem loud_map(DType dtype);
/// Of this score, under a mask with finite biases, narrow. Not for linear scores.
AttentionProblem biased_map(DType dtype, ScoreFunction score);
/// Narrow, of a linear score.
AttentionProblem linear_map(DType dtype);
/// Self-attention of text and a grid of video, narrow. The second tile's rows are loud.
AttentionProblem video_map(DType dtype);

}  // namespace attnscope::cuda
