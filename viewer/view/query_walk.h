#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/view/maps/map_tile.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The axes that a query is moved along: columns, rows and frames of the latent video.
enum class WalkAxis : uint8_t { x, y, t };
std::string_view walk_axis_name(WalkAxis axis);

/// The tokens `by` cells further; of tokens that stand on no grid, as the prompt's, x goes along
/// the sequence. Throws Error(usage) "walk x 1: …" where one of them would leave the grid (or the
/// sequence), or there is no such axis.
ChosenQuery walked_query(const TokenGrid& grid, const std::vector<int64_t>& tokens, WalkAxis axis,
                         int64_t by);

/// Of a line's values the next larger one than that of token `from`, or the next smaller one, of
/// equal ones that with the smaller place first; without `from` the largest. Masked entries and
/// those without a number are passed over. Nothing where there is none.
std::optional<int64_t> next_by_value(const MapLine& line, std::optional<int64_t> from, bool larger);

}  // namespace attnscope
