#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace attnscope {

/// Rows of a tile: keys, or queries, that one multiplication takes at most.
inline constexpr int64_t kKeyRowTile = 16;

/// Keys as rows that meet up to kKeyRowTile query rows on the tile unit (CpuKernels::key_rows).
/// Nothing but `queries` needs alignment.
struct KeyRows {
  /// Rows of numbers [parts, 2·pairs] that lie key_stride bytes apart; readable, whatever they
  /// hold, up to a multiple of kKeyRowTile of them.
  const std::byte* keys = nullptr;
  int64_t key_stride = 0;
  int64_t count = 0;
  /// The query rows, column by column: [parts, pairs, kKeyRowTile] pairs of numbers, 64-byte
  /// aligned. Columns from `rows` on are computed and dropped.
  const float* queries = nullptr;
  int64_t rows = 0;
  int64_t parts = 1;  ///< numbers that an element is the sum of (see PackedFormat)
  int64_t pairs = 0;  ///< a multiple of kKeyRowTile
  /// The product of query r and key j goes to out[r · out_stride + j]; up to a multiple of
  /// kKeyRowTile keys are written.
  float* out = nullptr;
  int64_t out_stride = 0;
};

/// Rows as a tensor stores them, one after the other at any address, on their way into KeyRows:
/// where parts are several, they are split in bf16 numbers; all are filled up with zeros.
struct SplitRows {
  DType dtype = DType::bf16;
  const std::byte* source = nullptr;
  int64_t head_dim = 0;
  int64_t count = 0;
  int64_t parts = 1;
  int64_t pairs = 0;
  std::byte* out = nullptr;  ///< [count, parts, 2·pairs]
};

}  // namespace attnscope
