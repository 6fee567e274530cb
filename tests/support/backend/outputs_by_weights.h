#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/stream/tile_backend.h"
#include "core/stream/value_panels.h"

namespace attnscope::test {

/// BoundHead::outputs by means of the head's other members: weights of a block of keys at a time,
/// and plain loops over V. Same contract, with the workspace that outputs_by_weights_bytes() says.
/// For heads of tests that watch or spoil weights.
void outputs_by_weights(const BoundHead& head, const QueryBlock& queries, std::span<RowNorm> norms,
                        const ValuePanels& values, const OutputTarget& target,
                        std::span<std::byte> workspace);
int64_t outputs_by_weights_bytes(const TileBackend& backend, const AttentionProblem& problem,
                                 int64_t rows);

}  // namespace attnscope::test
