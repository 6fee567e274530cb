#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// Figures of a row or column of a map that has one value for each token of `tokens`. Sums are in
/// double, in the order of the tokens.

/// The sum over some tokens.
double mass_on(std::span<const float> line, IndexRange tokens);
/// The sum over each latent frame: [frames]; empty without a grid.
std::vector<double> frame_masses(std::span<const float> line, const TokenGrid& tokens);
/// The `count` tokens of a range with the largest values (fewer where it has fewer), the largest
/// first, of equal ones the earlier.
std::vector<int64_t> largest_tokens(std::span<const float> line, IndexRange among, int64_t count);

}  // namespace attnscope
