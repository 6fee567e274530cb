#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/mask/query_spans.h"
#include "io/stream/joined_keys.h"

namespace attnscope {

/// What the queries of chunks attend to of the joined keys: what each chunk's own mask lets them.
/// Reads masks row by row. Throws Error(usage) where a mask differs between batch items or heads or
/// has finite biases, which spans cannot tell; Error(interrupted) soon after a stop is requested;
/// what reading throws.
std::vector<QuerySpan> joined_spans(std::span<const CallEntry* const> chunks,
                                    const std::vector<ChunkTokens>& queries, const JoinedKeys& keys,
                                    const std::stop_token& stop);

}  // namespace attnscope
