#pragma once

namespace attnscope::cuda {

/// How the keys of a pass over rows are shared out among thread blocks.
struct SplitPlan {
  int split_segments = 1;  ///< segments that one block takes
  int splits = 1;          ///< blocks a tile of rows
  int blocks = 0;          ///< of the whole launch
};

/// The longest splits that still give every multiprocessor `resident_blocks` blocks; where rows
/// and keys do not suffice for that, one segment a block. Pure.
SplitPlan plan_splits(int row_tiles, int segments, int multiprocessors, int resident_blocks);

}  // namespace attnscope::cuda
