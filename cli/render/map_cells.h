#pragma once

#include <cstdint>

namespace attnscope {

/// Cells along the longer side of a map that is drawn alone, and of one among many, where no
/// --block says otherwise.
inline constexpr int64_t kMatrixCells = 1024;
inline constexpr int64_t kMosaicCells = 64;
/// A map of more cells is no picture any more.
inline constexpr int64_t kMostCells = 4096;

}  // namespace attnscope
