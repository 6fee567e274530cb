#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/problem/attention_problem.h"
#include "kernels/cuda/host/profile/launch_work.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

/// A mask over a rectangle of tiles as the kernels read it, see TileMaskView: a word a tile, and
/// only of tiles that are neither empty nor full the bits (or, where there are finite biases, the
/// biases) of their entries. A value; host memory.
struct MaskTiles {
  int row_tiles = 0;
  int first_tile = 0;  ///< key tiles [first_tile, end_tile)
  int end_tile = 0;
  std::vector<uint32_t> tiles;  ///< empty: every tile is full
  std::vector<uint32_t> bits;
  std::vector<float> biases;

  /// Of every column of tiles, where not all are full: rows of tiles that are not empty, and bytes.
  std::vector<MaskedColumn> columns(int64_t rows) const;

  /// Bytes at most for so many tiles.
  static int64_t most_bytes(const Mask& mask, int64_t tiles);
};

/// `rows` are the sequence indices of the rows, ascending; kTileRows of them make a tile. Rows and
/// keys beyond the last are masked in mixed tiles.
MaskTiles make_mask_tiles(const AttentionProblem& problem, int64_t batch, int64_t head,
                          std::span<const int64_t> rows, int first_tile, int end_tile);

}  // namespace attnscope::cuda
