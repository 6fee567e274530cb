#pragma once

#include <cstdint>
#include <span>

#include "core/base/memory_budget.h"
#include "core/reference/attend_rows.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Who computes what is compared: the backend of the maps that the user will see, in memory that is
/// reserved from the budget. Borrowed; thread-safe.
struct CheckMeans {
  const TileBackend& backend;
  MemoryBudget& budget;
};

/// Bytes that computed_rows() reserves.
int64_t computed_rows_bytes(const CallEntry& call, const TileBackend& backend);

/// Rows (indices of the query sequence, in any order) of one head as an export has them: LSEs (0
/// where the score has none), and where the call has outputs to compare with, the weights times V,
/// summed in double. Throws Error(value) where the backend refuses a row, Error(resource) where the
/// budget does not hold the head.
AttendedRows computed_rows(const CallEntry& call, int64_t batch, int64_t head,
                           std::span<const int64_t> rows, const CheckMeans& means);

}  // namespace attnscope
