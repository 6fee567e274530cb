#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "io/files/json_types.h"
#include "io/stream_chunks/joined_keys.h"

namespace attnscope {

/// The token map of the joined queries: segments of one name and modality whose positions follow
/// each other are one, grids of the same rows and columns one grid of all their frames. Throws
/// Error(usage) where a segment says what parts of it cannot: padding, an order of its own.
OrderedJson joined_query_segments(std::span<const CallEntry* const> chunks,
                                  const std::vector<ChunkTokens>& queries);

/// That of the joined keys: own ones as the queries that they are, what caches held otherwise as
/// `history`.
OrderedJson joined_key_segments(std::span<const CallEntry* const> chunks, const JoinedKeys& keys);

}  // namespace attnscope
