#pragma once

#include <fmt/core.h>

#include <cstdint>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {

/// Cells along the longer side of a map that is drawn alone, and of one among many, where no
/// --block says otherwise.
inline constexpr int64_t kMatrixCells = 1024;
inline constexpr int64_t kMosaicCells = 64;

/// Throws Error(usage) where blocks of `block` tokens cut the longer side of a map, `tokens` long,
/// into more cells than a picture has room for.
inline void check_cells(int64_t tokens, int64_t block) {
  constexpr int64_t kMostCells = 4096;
  const int64_t cells = ceil_div(tokens, block);
  if (cells <= kMostCells) return;
  throw usage_error(fmt::format(
      "--block {}: makes {} cells of {} tokens, more than the {} of a picture; take at least {}",
      block, cells, tokens, kMostCells, ceil_div(tokens, kMostCells)));
}

}  // namespace attnscope
