#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/stream/tile_sink.h"
#include "io/export/format/export_layout.h"

namespace attnscope {

/// A tile as a shard stores it: made by the worker that computed the tile, outside any lock.
struct PreparedTile {
  int64_t head = 0;  ///< within the group
  IndexRange rows;
  int64_t first_chunk = 0;
  std::vector<std::vector<std::byte>> chunks;  ///< compressed; empty where all entries are 0
  std::vector<uint32_t> checksums;             ///< of the chunks as they are stored
  std::vector<float> lse;       ///< of the rows; empty but in the first tile of a row
  std::vector<float> weights;   ///< topk: [rows, k]; threshold: of all rows
  std::vector<int32_t> keys;    ///< of the weights
  std::vector<float> mass;      ///< [rows]
  std::vector<int64_t> counts;  ///< threshold: weights a row
};

/// Compresses or reduces a tile. Thread-safe.
PreparedTile prepare_tile(const ExportSpec& spec, const ExportLayout& layout,
                          const ExportGroup& group, int64_t head, const Tile& tile);

}  // namespace attnscope
