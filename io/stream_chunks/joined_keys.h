#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/index_range.h"
#include "io/capture/call/call_entry.h"

namespace attnscope {

/// Neighbouring tokens of a chunk's call.
struct ChunkTokens {
  size_t chunk = 0;  ///< place in the list of chunks
  IndexRange tokens;

  friend bool operator==(const ChunkTokens&, const ChunkTokens&) = default;
};

/// Where keys of a chunk's call stand among the joined ones.
struct PlacedKeys {
  IndexRange keys;
  int64_t column = 0;  ///< of the first; the others follow it
};

/// The keys of chunks as those of one call. First and last come keys without a position, which all
/// chunks have alike; between them by position the keys that a cache held otherwise than the chunk
/// that they are of attended to them itself (a chunk of several denoising steps), and then, by
/// position, every key that ever was there.
struct JoinedKeys {
  std::vector<ChunkTokens> first, cached, own, last;
  std::vector<std::vector<PlacedKeys>> placed;  ///< [chunk], ascending, all of the call's keys

  /// All of them, in the order of the sequence.
  std::vector<ChunkTokens> all() const;
};

/// The queries of chunks by position. Throws Error(usage) where a segment has no position, or
/// several chunks have the same one.
std::vector<ChunkTokens> joined_queries(std::span<const CallEntry* const> chunks);

/// Compares the bits of all keys and values that a position has in several chunks. Throws
/// Error(usage) naming position, chunks and values where the cache's differ between them, or keys
/// without a position do; Error(interrupted) soon after a stop is requested; what reading throws.
/// Memory stays below a few MiB.
JoinedKeys join_keys(std::span<const CallEntry* const> chunks, const std::stop_token& stop);

}  // namespace attnscope
