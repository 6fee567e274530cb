#include "kernels/cuda/host/plans/mask_tiles.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"

namespace attnscope::cuda {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr int kWordKeys = 32;

/// Appends a mixed tile; `biases` are [kTileRows, kTileKeys].
void append_bits(const std::vector<float>& biases, std::vector<uint32_t>& bits) {
  for (size_t at = 0; at < biases.size(); at += kWordKeys) {
    uint32_t word = 0;
    for (size_t i = 0; i < kWordKeys; ++i) {
      if (biases[at + i] != kMasked) word |= uint32_t{1} << i;
    }
    bits.push_back(word);
  }
}

}  // namespace

std::vector<MaskedColumn> MaskTiles::columns(int64_t rows) const {
  const int64_t tile_bytes =
      biases.empty() ? kTileRows * (kTileKeys / 8) : kTileRows * kTileKeys * 4;
  const int width = end_tile - first_tile;
  std::vector<MaskedColumn> columns(static_cast<size_t>(tiles.empty() ? 0 : width));
  for (size_t i = 0; i < tiles.size(); ++i) {
    MaskedColumn& column = columns[i % static_cast<size_t>(width)];
    const int64_t row = static_cast<int64_t>(i) / width * kTileRows;
    if (tiles[i] != kEmptyTile) column.rows += std::min<int64_t>(kTileRows, rows - row);
    if (tiles[i] >= kMixedTile) column.bytes += tile_bytes;
  }
  return columns;
}

int64_t MaskTiles::most_bytes(const Mask& mask, int64_t tiles) {
  constexpr int64_t kEntries = int64_t{kTileRows} * kTileKeys;
  return tiles * (4 + (mask.has_finite_bias() ? kEntries * 4 : kEntries / 8));
}

MaskTiles make_mask_tiles(const AttentionProblem& problem, int64_t batch, int64_t head,
                          std::span<const int64_t> rows, int first_tile, int end_tile) {
  MaskTiles result;
  const auto count = static_cast<int64_t>(rows.size());
  result.row_tiles = static_cast<int>(ceil_div(count, kTileRows));
  result.first_tile = first_tile;
  result.end_tile = end_tile;
  const Mask& mask = problem.mask();
  if (mask.is_none()) return result;
  const bool finite = mask.has_finite_bias();
  std::vector<float> biases;
  bool all_full = true;
  for (int64_t row = 0; row < count; row += kTileRows) {
    const auto part = rows.subspan(static_cast<size_t>(row),
                                   static_cast<size_t>(std::min<int64_t>(kTileRows, count - row)));
    const IndexRange queries{part.front(), part.back() + 1};
    for (int tile = first_tile; tile < end_tile; ++tile) {
      const IndexRange keys = intersect(
          {int64_t{tile} * kTileKeys, (tile + 1) * int64_t{kTileKeys}}, {0, problem.num_keys()});
      const TileClass left =
          keys.empty() ? TileClass::empty : mask.classify(batch, head, queries, keys);
      all_full = all_full && left == TileClass::full;
      if (left != TileClass::mixed) {
        result.tiles.push_back(left == TileClass::empty ? kEmptyTile : kFullTile);
        continue;
      }
      biases.assign(size_t{kTileRows} * kTileKeys, kMasked);
      mask.fill_bias(batch, head, part, keys, biases.data(), kTileKeys);
      const auto number =
          static_cast<uint32_t>(finite ? result.biases.size() / biases.size()
                                       : result.bits.size() / (biases.size() / kWordKeys));
      result.tiles.push_back(kMixedTile + number);
      if (finite) {
        result.biases.insert(result.biases.end(), biases.begin(), biases.end());
      } else {
        append_bits(biases, result.bits);
      }
    }
  }
  if (all_full) result.tiles.clear();
  return result;
}

}  // namespace attnscope::cuda
