#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/kernel/reduce_args.h"
#include "kernels/cuda/kernel/texel_args.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

/// The name and the amount of a piece of work on a device, as its caller knows them. Bytes are
/// those of device memory that must move: every input once, and the outputs.
struct LaunchWork {
  std::string kernel;
  std::string product = {};
  int splits = 0;
  double flops = 0;
  double bytes = 0;
};

/// The rows that a mask leaves of one column of tiles, and the mask's bytes there.
struct MaskedColumn {
  int64_t rows = 0;   ///< in tiles that are not empty
  int64_t bytes = 0;  ///< bits or biases of its mixed tiles
};

/// The facts about a call that the kernels' arguments do not say. Borrows.
struct CallFacts {
  const char* product = "";
  bool stored = false;  ///< products are read, not made
  int head_dim = 0;
  int64_t row_bytes = 0;  ///< of a packed query or key
  /// Of the key tiles from TileMaskView::first on; empty: no tile is.
  const std::vector<MaskedColumn>& masked;
};

/// The work of the launches over a call's tiles. Tiles that the mask leaves empty do not count, nor
/// does the padding of rows and keys. Pure.
LaunchWork row_sums_work(const NormArgs& args, bool moments, const CallFacts& facts);
LaunchWork entries_work(const EmitArgs& args, int split_tiles, const CallFacts& facts);
LaunchWork texels_work(const TexelArgs& args, int split_tiles, const CallFacts& facts);
LaunchWork reductions_work(const ReduceArgs& args, const CallFacts& facts);
LaunchWork combine_tiles_work(const CombineArgs& args);
/// Of products that cuBLAS makes: whole batches of [m, k] times [k, n], padding and all; `left` and
/// `right` say how many different matrices the batch has.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0, batches = 1;
  int64_t left = 1, right = 1;
  int64_t element_bytes = 4;  ///< of the inputs; results are float32
};
LaunchWork gemm_work(const char* what, const GemmShape& shape);

}  // namespace attnscope::cuda
