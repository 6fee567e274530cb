#pragma once

#include <span>
#include <stop_token>
#include <string_view>

#include "core/base/memory_budget.h"
#include "core/products/norm_store.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// What to tell people where they may not.
inline constexpr std::string_view kForeignNorms =
    "row sums that were kept are not of this map: they are computed anew";

/// Whether norms that come from a store, one a row, may be believed: a few rows, chosen at random
/// each time, are computed anew by `backend`, which the others are said to be of, and must agree to
/// the bit. What spoils a share p of them is found out with the probability 1 − (1 − p)⁸ or more.
/// Takes the time to pack the head's keys and some rows' products, and reserves what that takes
/// from `budget`. Throws Error(resource) where the budget does not hold it, Error(interrupted) soon
/// after a stop is requested.
bool norms_agree(const NormSource& source, std::span<const RowNorm> norms,
                 const TileBackend& backend, MemoryBudget& budget, std::stop_token stop);

}  // namespace attnscope
