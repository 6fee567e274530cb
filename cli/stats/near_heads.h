#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cli/run/stream_run.h"
#include "core/heads/head_record.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Throws Error(resource) where find_near_heads() would of the calls.
void check_near_memory(std::span<const SelectedCall> calls, const TileBackend& backend,
                       MemoryBudget& budget, int threads);

/// Finds for each record the `most` heads of the calls that are nearest to it: of its step, branch,
/// forward, chunk and batch item, with as many queries and keys, and with scores that are
/// normalised. False: it was stopped, and some records have none. Throws what a stream of tiles
/// throws.
bool find_near_heads(const StreamJob& job, std::span<const SelectedCall> calls, int threads,
                     size_t most, std::vector<HeadRecord>& records);

}  // namespace attnscope
