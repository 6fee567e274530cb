#pragma once

#include <cstdint>

namespace attnscope {

/// A latent position: frame, row, column.
struct LatentCoord {
  int64_t t = 0;
  int64_t y = 0;
  int64_t x = 0;
  friend constexpr bool operator==(const LatentCoord&, const LatentCoord&) = default;
};

}  // namespace attnscope
