#include "viewer/view/head_mask.h"

#include <algorithm>

namespace attnscope {

int64_t mask_block(int64_t rows, int64_t cols) {
  int64_t block = 1;
  while (std::max(rows, cols) > block * kMostMaskBlocks) block *= 2;
  return block;
}

}  // namespace attnscope
