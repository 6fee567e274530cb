#pragma once

namespace attnscope::cuda {

/// How the keys of a pass over rows are shared out among thread blocks.
struct SplitPlan {
  int split_segments = 1;  ///< segments that one block takes
  int splits = 1;          ///< blocks for the same rows
  int blocks = 0;          ///< of the whole launch
};

/// The split that is done first on a device that runs `resident_blocks` blocks on each of its
/// multiprocessors, in waves: a last wave that is nearly empty costs as much as a full one. Of
/// equal ones that of the longest splits. `row_blocks` blocks take the rows. Pure.
SplitPlan plan_splits(int row_blocks, int segments, int multiprocessors, int resident_blocks);

}  // namespace attnscope::cuda
