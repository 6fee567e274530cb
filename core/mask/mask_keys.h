#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/mask_term.h"

namespace attnscope {

// The terms of Mask's factories of the same names (core/mask/mask.h says which entries each keeps).
// All throw Error(usage) where the lists contradict themselves.
MaskTermPtr keys_term(std::vector<std::vector<uint8_t>> valid);
MaskTermPtr key_lengths_term(std::vector<int64_t> lengths, int64_t num_keys);
MaskTermPtr key_range_term(IndexRange range, int64_t num_keys);
MaskTermPtr segments_term(std::vector<int64_t> cu_queries, std::vector<int64_t> cu_keys);

}  // namespace attnscope
