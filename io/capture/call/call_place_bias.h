#pragma once

#include <string>
#include <vector>

#include "io/capture/call/call_entry.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/call/call_tokens.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

// Biases by place (core/mask/place_bias.h) of the tensor that an option names (none or FILE[:KEY]),
// else of the one that stands beside q. A note where the option replaces a tensor. Both throw
// Error(usage), Error(file) where the tensor is of another type or shape; Error(value) where a
// number is of no use.

/// --alibi, alibi_slopes: [heads] or [batch, heads].
PlaceBias call_alibi(const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides, const ReadControl& control,
                     std::vector<std::string>& notes);

/// --relative-bias, relative_bias: [heads, queries + keys − 1], or [heads, 2T − 1, 2H − 1, 2W − 1]
/// of the grid T×H×W that queries and keys share; with an axis of batch items before or without.
PlaceBias call_relative_bias(const CallTensors& tensors, const HeadTensors& heads,
                             const CallTokens& tokens, const FactOverrides& overrides,
                             const ReadControl& control, std::vector<std::string>& notes);

}  // namespace attnscope
