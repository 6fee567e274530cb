#pragma once

#include <string>
#include <vector>

#include "core/layout.h"
#include "core/mask.h"
#include "io/call_builder.h"

namespace attnscope {

/// The values of a cu_seqlens tensor, int32 or int64 [n + 1], as flash-attention's variable-length
/// functions take it: sequence i holds the tokens from value i up to value i + 1. Throws
/// Error(file) where it is none.
std::vector<int64_t> read_boundaries(const TensorSource& tensor);

/// The mask of sequences packed one after another along the token axis of one batch item: a query
/// attends to the keys of its own sequence. No mask where there is only one; a note where there are
/// several. Throws Error where the boundaries do not fit q and k, or the call is causal and its
/// queries and keys are cut at different places (the library aligns those at their ends).
Mask packed_mask(const CallTensors& tensors, const HeadTensor& q, const HeadTensor& k, bool causal,
                 std::vector<std::string>& notes);

}  // namespace attnscope
