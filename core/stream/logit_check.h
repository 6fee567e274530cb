#pragma once

#include <cstdint>
#include <span>
#include <stop_token>

#include "core/base/memory_budget.h"
#include "core/stream/number_range.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Finds out before a long stream whether its softmax will be refused because logits are too large:
/// the rows of the tasks for which scale·‖q‖·max‖k‖ does not exclude it (Cauchy and Schwarz) are
/// given to the backend, which computes their norms alone. For ordinary q and k these are none, and
/// the cost is reading them once. What biases alone do is not looked at.
///
/// All of q and k must be finite. Throws what the backend throws at such a row (Error(value)),
/// Error(resource) where the budget does not hold one head, Error(interrupted) soon after a stop is
/// requested.
void check_logits(std::span<const HeadTask> tasks, const TileBackend& backend, MemoryBudget& budget,
                  std::stop_token stop);

/// Finds out before a long stream of logits (of sigmoid and signed weights, which are made of them
/// without a norm) whether float32 holds all of them: those rows for which |q|·|k| does not exclude
/// it are computed. `magnitudes`: of each task, as check_values() returns them. Throws Error(value)
/// that names the first entry that is NaN or infinite and not masked, and as check_logits() does.
void check_stored_logits(std::span<const HeadTask> tasks,
                         std::span<const TaskMagnitudes> magnitudes, const TileBackend& backend,
                         MemoryBudget& budget, std::stop_token stop);

/// Holds a row of logits of a task, as a backend computed them, against its mask: throws
/// Error(value) at the first entry that is NaN or infinite and not masked. `query` is an index of
/// the sequence, `cols` of the task's keys, as many as `logits`. Thread-safe.
void check_logit_row(const HeadTask& task, int64_t query, IndexRange cols,
                     std::span<const float> logits);

}  // namespace attnscope
