#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/place_order.h"
#include "core/mask/picked_blocks.h"
#include "core/problem/token_grid.h"
#include "core/tensor/layout.h"

namespace attnscope {

/// `block` tokens each as they stand in `order`, from its first place on; the last one is ragged.
/// With `exempt_text`, blocks that hold anything but video are exempt, where there is video at all.
TokenBlocks consecutive_blocks(const TokenGrid& tokens, int64_t block, const PlaceOrder& order,
                               bool exempt_text);
/// Tiles of `tile` cells of the video's grid, which must be known, row-major; those at the far
/// edges are smaller. Behind them stands an exempt block for each range of other tokens.
TokenBlocks tile_blocks(const TokenGrid& tokens, std::array<int64_t, 3> tile);
/// The same with the ranges of other tokens cut into blocks as large as a tile, exempt or not.
TokenBlocks packed_tiles(const TokenGrid& tokens, std::array<int64_t, 3> tile, bool exempt_others);
/// Tiles along each axis of the video's grid.
std::array<int64_t, 3> tiles_of(const TokenGrid& tokens, std::array<int64_t, 3> tile);

/// Changes a token's channels before they are added to its block's sum.
using ChannelChange = std::function<void(std::span<double> channels)>;
/// Means over each block's tokens, in double: [blocks, width]. Throws Error(interrupted) on a stop,
/// Error(value) at a token that is not finite.
std::vector<double> block_means(const HeadTensor& tensor, int64_t batch, int64_t head,
                                const TokenBlocks& blocks, const std::stop_token& stop,
                                const ChannelChange& change = {});

}  // namespace attnscope
