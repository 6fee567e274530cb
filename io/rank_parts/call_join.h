#pragma once

#include <vector>

#include "io/capture/capture_writer.h"
#include "io/rank_parts/part_set.h"

namespace attnscope {

/// The call that the parts of all ranks make: tokens in the places of the whole sequence, heads by
/// their numbers, the facts of the whole. Shares the parts' tensors. Throws Error(file) where
/// something is missing, is there twice and not the same, or cannot be joined; facts and shapes
/// that differ are named with both files.
CallToWrite join_call(const std::vector<RankCall>& parts);

}  // namespace attnscope
