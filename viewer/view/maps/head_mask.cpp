#include "viewer/view/maps/head_mask.h"

#include <algorithm>

namespace attnscope {

int64_t mask_block(int64_t rows, int64_t cols) {
  int64_t block = 1;
  while (std::max(rows, cols) > block * kMostMaskBlocks) block *= 2;
  return block;
}

double most_lost(const HeadMask& mask) {
  float most = 0;
  for (size_t i = 0; i < mask.mass.size(); ++i) {
    if (mask.kept[i] == 0) most = std::max(most, mask.mass[i]);
  }
  return double{most};
}

}  // namespace attnscope
