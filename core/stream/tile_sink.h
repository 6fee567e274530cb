#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/attention_problem.h"
#include "core/stream/tile_backend.h"
#include "core/stream/weight_code.h"

namespace attnscope {

/// One head's share of a stream: which rows and keys of it are wanted.
struct HeadTask {
  const AttentionProblem* problem = nullptr;
  int64_t batch = 0;
  int64_t head = 0;
  /// Rows wanted: this range, unless row_list is not empty.
  IndexRange rows;
  /// Ascending row indices, where they are no range. Borrowed.
  std::span<const int64_t> row_list;
  IndexRange keys;
  /// Norms of the rows wanted, in their order, where they are known already: then weights take one
  /// product of the task's keys alone. Borrowed; empty: they are computed where they are needed.
  std::span<const RowNorm> known_norms = {};

  int64_t num_rows() const {
    return row_list.empty() ? rows.size() : static_cast<int64_t>(row_list.size());
  }
  int64_t row_at(int64_t i) const {
    return row_list.empty() ? rows.begin + i : row_list[static_cast<size_t>(i)];
  }
};

/// The output that a sink asks of the stream.
struct TileRequest {
  /// Entries wanted at all; without them only row norms are computed.
  bool entries = true;
  /// Row norms wanted (never for sigmoid and logits).
  bool norms = true;
  Quantity quantity = Quantity::weights;
  Encoding encoding = Encoding::f32;
  /// The columns are channels of the attention output instead of keys: float32, over all keys, for
  /// problems with V. chunk_cols must be at least the largest width of V.
  bool outputs = false;
  /// Tiles are cut on multiples of these, counted from the task's first row and key. Norms alone
  /// come in any number of rows: fewer where memory is short, more where a device wants them.
  int64_t chunk_rows = 384;
  int64_t chunk_cols = 512;
  /// The sink's own memory while it consumes a tile, in percent of the tile's bytes: planned for,
  /// and reserved with the tile.
  int64_t sink_percent = 0;
  /// consume() waits for the tiles that stand before it in the stream's order (heads, rows,
  /// columns). Otherwise tiles that take longest may come first.
  bool in_order = false;
};

/// A finished piece of one task: up to chunk_rows rows, and a run of whole column chunks. Borrowed:
/// valid during consume() only.
struct Tile {
  const HeadTask* task = nullptr;
  int64_t task_index = 0;
  /// Positions among the task's rows and keys (not indices of the sequence).
  IndexRange rows;
  IndexRange cols;
  /// chunks[i] holds column chunk cols.begin / chunk_cols + i, [chunk_rows, chunk_cols] packed,
  /// zero outside the task; null where the mask leaves the chunk empty and so all its weights are 0
  /// (logits are always delivered). Neighbouring chunks that are not null are contiguous in memory.
  std::span<std::byte* const> chunks;
  /// Norms of the rows; delivered once a row, with the tile that has first_segment.
  std::span<const RowNorm> norms;
  bool first_segment = true;
};

/// The seam to whatever takes tiles: a file, a texture, an accumulator.
class TileSink {
 public:
  virtual ~TileSink() = default;
  virtual TileRequest request() const = 0;
  /// Called once before the first tile. `workers` threads may call consume() at once.
  virtual void begin(std::span<const HeadTask> tasks, int workers) = 0;
  /// Takes one tile; called concurrently, each tile once, in no particular order.
  virtual void consume(const Tile& tile) = 0;
  /// Called once when every tile was consumed; not after an error or a stop.
  virtual void end() = 0;
  /// Called when some tiles will never come, after an error or a stop, from any thread and perhaps
  /// more than once: a consume() that waits for other tiles must throw Error(interrupted) then.
  virtual void abort() noexcept {}
};

}  // namespace attnscope
