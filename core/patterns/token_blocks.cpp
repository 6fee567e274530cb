#include "core/patterns/token_blocks.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// Throws Error(value) that names the first channel which is not finite.
void require_finite_row(std::span<const double> row, const HeadTensor& tensor, int64_t batch,
                        int64_t head, int64_t token) {
  for (size_t c = 0; c < row.size(); ++c) {
    if (std::isfinite(row[c])) continue;
    throw Error(ErrorCode::value, tensor.source().name() + ": batch " + std::to_string(batch) +
                                      ", head " + std::to_string(head) + ", token " +
                                      std::to_string(token) + ", channel " + std::to_string(c) +
                                      ": is " + std::to_string(row[c]) +
                                      " (values must be finite)");
  }
}

/// Tiles of the video, and behind them blocks of at most `most` tokens of each other range.
TokenBlocks cut_tiles(const TokenGrid& tokens, std::array<int64_t, 3> tile, int64_t most,
                      bool exempt_others) {
  const std::array<int64_t, 3> tiles = tiles_of(tokens, tile);
  TokenBlocks blocks;
  blocks.of_token.resize(static_cast<size_t>(tokens.tokens()));
  blocks.lengths.resize(static_cast<size_t>(tiles[0] * tiles[1] * tiles[2]));
  blocks.exempt.resize(blocks.lengths.size());
  const IndexRange video = tokens.video_range();
  for (int64_t token = video.begin; token < video.end; ++token) {
    const LatentCoord at = *tokens.coord(token);
    const int64_t number = (at.t / tile[0] * tiles[1] + at.y / tile[1]) * tiles[2] + at.x / tile[2];
    blocks.of_token[static_cast<size_t>(token)] = static_cast<int32_t>(number);
    ++blocks.lengths[static_cast<size_t>(number)];
  }
  for (const IndexRange range : tokens.outside_video()) {
    for (int64_t begin = range.begin; begin < range.end; begin += most) {
      const int64_t end = std::min(begin + most, range.end);
      std::fill(blocks.of_token.begin() + begin, blocks.of_token.begin() + end,
                static_cast<int32_t>(blocks.size()));
      blocks.lengths.push_back(end - begin);
      blocks.exempt.push_back(exempt_others ? 1 : 0);
    }
  }
  return blocks;
}

}  // namespace

TokenBlocks consecutive_blocks(const TokenGrid& tokens, int64_t block, const PlaceOrder& order,
                               bool exempt_text) {
  const int64_t count = ceil_div(tokens.tokens(), block);
  TokenBlocks blocks;
  blocks.of_token.resize(static_cast<size_t>(tokens.tokens()));
  blocks.lengths.resize(static_cast<size_t>(count));
  blocks.exempt.resize(static_cast<size_t>(count));
  for (int64_t place = 0; place < tokens.tokens(); ++place) {
    blocks.of_token[static_cast<size_t>(order.token(place))] = static_cast<int32_t>(place / block);
    ++blocks.lengths[static_cast<size_t>(place / block)];
  }
  if (!exempt_text || tokens.video_range().empty()) return blocks;
  for (const IndexRange range : tokens.outside_video()) {
    for (int64_t token = range.begin; token < range.end; ++token) {
      blocks.exempt[static_cast<size_t>(blocks.of_token[static_cast<size_t>(token)])] = 1;
    }
  }
  return blocks;
}

std::array<int64_t, 3> tiles_of(const TokenGrid& tokens, std::array<int64_t, 3> tile) {
  return {ceil_div(tokens.frames(), tile[0]), ceil_div(tokens.height(), tile[1]),
          ceil_div(tokens.width(), tile[2])};
}

TokenBlocks tile_blocks(const TokenGrid& tokens, std::array<int64_t, 3> tile) {
  return cut_tiles(tokens, tile, tokens.tokens(), true);
}

TokenBlocks packed_tiles(const TokenGrid& tokens, std::array<int64_t, 3> tile, bool exempt_others) {
  return cut_tiles(tokens, tile, tile[0] * tile[1] * tile[2], exempt_others);
}

std::vector<double> block_means(const HeadTensor& tensor, int64_t batch, int64_t head,
                                const TokenBlocks& blocks, const std::stop_token& stop,
                                const ChannelChange& change) {
  const auto width = static_cast<size_t>(tensor.width());
  std::vector<double> means(static_cast<size_t>(blocks.size()) * width);
  constexpr int64_t kReadRows = 64;
  std::vector<std::byte> raw(static_cast<size_t>(kReadRows * tensor.row_bytes()));
  std::vector<float> rows(static_cast<size_t>(kReadRows) * width);
  std::vector<double> row(width);
  for (int64_t begin = 0; begin < tensor.tokens(); begin += kReadRows) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const IndexRange part{begin, std::min(begin + kReadRows, tensor.tokens())};
    tensor.read_rows(batch, head, part, raw.data());
    to_floats(tensor.dtype(), raw.data(), part.size() * tensor.width(), rows.data());
    for (int64_t token = part.begin; token < part.end; ++token) {
      const auto first = rows.begin() + (token - begin) * tensor.width();
      std::copy(first, first + tensor.width(), row.begin());
      require_finite_row(row, tensor, batch, head, token);
      if (change) change(row);
      double* const sum =
          means.data() + static_cast<size_t>(blocks.of_token[static_cast<size_t>(token)]) * width;
      for (size_t c = 0; c < width; ++c) sum[c] += row[c];
    }
  }
  for (size_t b = 0; b < blocks.lengths.size(); ++b) {
    for (size_t c = 0; c < width; ++c) {
      means[b * width + c] /= static_cast<double>(blocks.lengths[b]);
    }
  }
  return means;
}

}  // namespace attnscope
