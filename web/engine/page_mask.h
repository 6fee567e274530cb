#pragma once

#include <cstdint>
#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

/// Which keys the rows of a page's map keep, as the page carries it: lists of runs of keys, of
/// which each row has one.
struct PageMask {
  std::vector<int32_t> row_lists;  ///< [queries]: the row's list
  std::vector<int32_t> starts;   ///< [lists + 1]: where in `runs` a list begins, and where it ends
  std::vector<IndexRange> runs;  ///< ascending and disjoint within a list
};

/// The page's mask as a condition of an attention problem. Throws Error(usage) where its numbers do
/// not fit each other, or a map of so many keys.
Mask page_mask(PageMask mask, int64_t keys);

}  // namespace attnscope
