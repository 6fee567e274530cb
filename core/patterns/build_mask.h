#pragma once

#include <cstdint>
#include <stop_token>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/patterns/mask_pattern.h"
#include "core/problem/attention_problem.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

class ScoreKeeper;

/// The backend, budget and stop that building a mask uses. Borrows.
struct MaskResources {
  const TileBackend& backend;
  MemoryBudget& budget;
  std::stop_token stop{};
  /// Where selectors that differ in their budget alone share their scores; null: nowhere. The
  /// caller keeps reserved what it holds between two masks.
  ScoreKeeper* scores = nullptr;
};

/// The pattern as a mask of one head. Rows that are not video (text, references, audio …) keep
/// everything; keys that are not are kept for all rows, but for those of text where the pattern
/// drops them. The caller keeps `bytes` reserved while the mask lives (0 for
/// patterns without data); what building takes meanwhile is reserved from the budget. Throws
/// Error(usage) where the call has no token grid and the pattern needs one, Error(interrupted) on
/// a stop.
Mask build_mask(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch,
                int64_t head, const MaskResources& resources);
/// Bytes that the built mask keeps, at most.
int64_t mask_bytes(const MaskPattern& pattern, const AttentionProblem& problem);
/// Bytes that build_mask() takes of the budget meanwhile, at least.
int64_t least_build_bytes(const MaskPattern& pattern, const AttentionProblem& problem,
                          const TileBackend& backend);

/// The largest band of `temporal` that is no denser than a frame: the largest b ≥ 0 with
/// T·(2b + 1)² ≤ H·W.
int64_t comparable_band(const TokenGrid& grid);

}  // namespace attnscope
