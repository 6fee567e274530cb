#pragma once

#include <cstdint>

#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

/// Sums over rows are formed in float32 within groups of at most this many, whose ends do not
/// depend on how a head is cut into calls; then in integers.
inline constexpr int kGroupRows = 16;

/// A latent position, and its place in an array of offsets: the offset of key k from row r stands
/// at key.linear − row.linear + the centre. `linear` is kNowhere for what has no position.
struct GridPlace {
  int32_t linear = 0;
  int16_t t = 0, y = 0, x = 0;
};
inline constexpr int32_t kNowhere = INT32_MIN;

/// The facts about a row that the reductions need.
struct RowFacts {
  GridPlace place;
  /// Element of the diagonals to which key 0 belongs.
  int32_t diagonal = 0;
  /// Row of blocks, counted from the call's first.
  int32_t block_row = 0;
  /// Not 0 where a group of rows begins here.
  int32_t begins_group = 0;
};

/// Keys of one tile that belong to one segment.
struct KeyRun {
  int32_t begin = 0;  ///< keys of the tile
  int32_t end = 0;
  int32_t segment = 0;
};

/// The results of one tile for one row. Sums of at most 128 float32 terms.
struct TileRowSums {
  float max_weight = 0;
  int32_t max_key = -1;
  float entropy = 0;  ///< −Σ w ln w
  float same_position = 0, band = 0, local = 0;
};

struct ReduceArgs {
  CallArgs call;
  const RowScale* scales = nullptr;  ///< [rows]; null for sigmoid
  int first_tile = 0;                ///< key tiles [first_tile, end_tile)
  int end_tile = 0;
  bool entropy = false;  ///< of entries: softmax rows have theirs from the moments of their sums
  bool places = false;
  int band = 0;
  const RowFacts* rows = nullptr;         ///< [row tiles · kTileRows]
  const GridPlace* key_places = nullptr;  ///< [key tiles · kTileKeys] or null
  const KeyRun* runs = nullptr;           ///< null: no row sums are wanted
  const int32_t* tile_runs = nullptr;     ///< [key tiles + 1]: the runs of a tile begin here
  double fixed_scale = 0;

  TileRowSums* row_sums = nullptr;  ///< [key tiles, row tiles · kTileRows]
  float* masses = nullptr;          ///< [runs, row tiles · kTileRows]
  // Integers, value · fixed_scale; null where not wanted.
  unsigned long long* columns = nullptr;    ///< [num_keys]
  unsigned long long* diagonals = nullptr;  ///< see RowFacts::diagonal
  unsigned long long* offsets = nullptr;
  int32_t offsets_centre = 0;
  // Blocks of `block` keys from first_key on, [block rows, blocks].
  int block = 0;
  int first_key = 0;
  int end_key = 0;
  int blocks = 0;
  double block_scale = 0;
  unsigned long long* block_sums = nullptr;  ///< integers, value · block_scale
  int32_t* block_maxima = nullptr;           ///< the bits of floats that are not negative
};

/// A row's sums over all tiles.
struct RowTotals {
  double entropy = 0;
  double same_position = 0, band = 0, local = 0;
  float max_weight = 0;
  int32_t max_key = -1;
};

struct CombineArgs {
  int rows = 0;
  int64_t stride = 0;  ///< row tiles · kTileRows
  int first_tile = 0, end_tile = 0;
  const TileRowSums* row_sums = nullptr;
  const KeyRun* runs = nullptr;
  const float* masses = nullptr;
  int run_count = 0;
  int segments = 0;
  RowTotals* totals = nullptr;   ///< [rows]
  double* row_masses = nullptr;  ///< [rows, segments]
};

}  // namespace attnscope::cuda
