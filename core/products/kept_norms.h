#pragma once

#include <span>
#include <stop_token>
#include <string_view>

#include "core/base/memory_budget.h"
#include "core/products/norm_store.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// The message for people where norms_agree() is false.
inline constexpr std::string_view kForeignNorms =
    "row sums that were kept are not of this map: they are computed anew";

/// True where the norms from a store, one a row, may be believed: a few rows, chosen at random each
/// time, are computed anew by `backend`, which is said to have computed the stored ones, and must
/// agree to the bit. A fault in a share p of the norms is found with the probability 1 − (1 − p)⁸
/// or more. Takes the time to pack the head's keys and some rows' products, and reserves the memory
/// for them from `budget`. Throws Error(resource) where the budget does not hold it,
/// Error(interrupted) soon after a stop is requested.
bool norms_agree(const NormSource& source, std::span<const RowNorm> norms,
                 const TileBackend& backend, MemoryBudget& budget, std::stop_token stop);

}  // namespace attnscope
