#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/mask/mask.h"
#include "core/tensor/layout.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// The values of a cu_seqlens tensor, int32 or int64 [n + 1], as flash-attention's variable-length
/// functions take it: sequence i holds the tokens from value i up to value i + 1. Throws
/// Error(file) where it is none.
std::vector<int64_t> read_boundaries(const TensorSource& tensor);

/// `tensors` with what --cu-seqlens and --cu-seqlens-k name in place of what stands beside q and k;
/// a note says where something did. A list is "0,9,24": anything else is FILE[:KEY]. Throws
/// Error(usage) where a list is none or that of the keys stands alone, Error(file) where a file
/// cannot be read.
CallTensors with_packed_options(CallTensors tensors, const FactOverrides& overrides,
                                const ReadControl& control, std::vector<std::string>& notes);

/// The facts of a call that count places of queries and keys; empty: none does.
struct CountedPlaces {
  std::string from_first, from_last;
};

/// The mask of sequences packed one after another along the token axis of one batch item: a query
/// attends to the keys of its own sequence. No mask where there is only one; a note where there are
/// several. Throws Error(code) where the boundaries do not fit q and k, or where what the call says
/// by places would be another thing in each sequence: `counted` from the first token where queries
/// and keys are cut at different places (the library aligns causal ones at their ends), from the
/// last one where a sequence has more keys than queries by another number than the call.
Mask packed_mask(const CallTensors& tensors, const HeadTensor& q, const HeadTensor& k,
                 const CountedPlaces& counted, ErrorCode code, std::vector<std::string>& notes);

}  // namespace attnscope
