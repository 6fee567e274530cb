#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/base/index_range.h"
#include "core/problem/latent_coord.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// Cells of a grid: frames × rows × columns, half-open.
using TokenBox = std::array<IndexRange, 3>;

/// A number N, or A:B (half-open), below `extent`. Throws Error(usage) that begins with `what` and
/// names `of` ("grid") as what it lies outside of.
IndexRange parse_box_axis(const std::string& part, const std::string& what, const char* of,
                          int64_t extent);

/// "T,Y,X", each a number or A:B, of a grid. Throws Error(usage) that begins with "WHAT TEXT".
TokenBox parse_token_box(const std::string& text, const std::string& what,
                         const std::array<int64_t, 3>& grid);

/// Calls `take` with each position of a box, row-major.
void each_position(const TokenBox& box, const std::function<void(LatentCoord)>& take);

/// The box of the grid's cells that these tokens are, which ascend; nothing where they are none.
std::optional<TokenBox> box_of(std::span<const int64_t> tokens, const TokenGrid& grid);

/// As parse_token_box() reads it: "5,0:30,10:12".
std::string box_text(const TokenBox& box);

}  // namespace attnscope
