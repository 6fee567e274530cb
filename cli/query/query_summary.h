#pragma once

#include <span>

#include "core/problem/token_grid.h"
#include "core/products/query_volumes.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Sums up a head's values in figures: sums over text, video and each frame of the sequence shown,
/// and its `top` largest tokens by name. `values` has one for every token of `shown`; `lse` may be
/// NaN (not one row's). Where the volumes are reversed the tokens are queries, else keys.
OrderedJson summarise_values(const QueryVolumes& volumes, const QueryVolume& volume,
                             const TokenGrid& shown, std::span<const float> values, double lse,
                             int64_t top);

/// The summaries of all heads as text on standard output. `shown`: as of QueryVolumes.
void print_row_summaries(const OrderedJson& heads, bool reverse, const std::string& shown);

}  // namespace attnscope
