#pragma once

#include <cstdint>
#include <stop_token>

#include "core/base/memory_budget.h"
#include "core/problem/attention_problem.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// A head, and what reading its map takes. Borrows.
struct ScoredHead {
  const AttentionProblem& problem;
  int64_t batch = 0, head = 0;
  const TileBackend& backend;
  MemoryBudget& budget;
  std::stop_token stop;
};

}  // namespace attnscope
