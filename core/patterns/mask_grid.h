#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/mask.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// Conditions on the latent positions of query and key. Text queries and keys are in none of them.
/// Queries and keys have the same grid, which must be known.
Mask spatial_mask(const TokenGrid& grid, int64_t frames);
Mask temporal_mask(const TokenGrid& grid, int64_t band);
/// Tiles of `tile` cells, counted from the grid's origin, the last ones ragged; of each axis a
/// query's tile q keeps `window` tiles from clamp(q − ⌊window/2⌋, 0, tiles − window).
Mask tile_mask(const TokenGrid& grid, std::array<int64_t, 3> tile, std::array<int64_t, 3> window);
/// With s cells a frame, cells counted row by row, D = |Δt|, bits(n) the binary digits of n (0 for
/// 0), L = 2^bits(s) / 2^bits(D): frames with L < block are kept where D is a multiple of
/// ⌊block/L⌋; in a frame that is kept |Δcell| ≤ w with w = s for D = 0, ⌊s/2⌋ for D = 1, else
/// max(decay·L, block). Key frames before `sink` are kept whole.
Mask radial_mask(const TokenGrid& grid, int64_t block, double decay, int64_t sink);
/// The queries of these ranges with all keys, and these keys with all queries. `name` describes it.
Mask ranges_mask(std::vector<IndexRange> queries, std::vector<IndexRange> keys, std::string name);

}  // namespace attnscope
