#pragma once

#include <algorithm>
#include <cstdint>

#include "core/checked_math.h"
#include "core/index_range.h"
#include "core/tile_sink.h"

namespace attnscope {

// How a task is cut into panels (chunk_rows rows) and column chunks (chunk_cols keys). Planner and
// engine share it, so that what was planned is what runs.

inline int64_t num_panels(const HeadTask& task, const TileRequest& request) {
  return ceil_div(task.num_rows(), request.chunk_rows);
}

inline int64_t num_col_chunks(const HeadTask& task, const TileRequest& request) {
  return request.entries ? ceil_div(task.keys.size(), request.chunk_cols) : 0;
}

/// Positions of panel `panel` among the task's rows.
inline IndexRange panel_rows(const HeadTask& task, const TileRequest& request, int64_t panel) {
  const int64_t begin = panel * request.chunk_rows;
  return {begin, std::min(begin + request.chunk_rows, task.num_rows())};
}

/// The smallest range of the sequence that holds the rows at these positions.
inline IndexRange row_span(const HeadTask& task, IndexRange positions) {
  return {task.row_at(positions.begin), task.row_at(positions.end - 1) + 1};
}

/// Keys of the sequence that column chunk `chunk` holds.
inline IndexRange chunk_keys(const HeadTask& task, const TileRequest& request, int64_t chunk) {
  const int64_t begin = task.keys.begin + chunk * request.chunk_cols;
  return {begin, std::min(begin + request.chunk_cols, task.keys.end)};
}

/// Whether a chunk needs computing: weights that the mask leaves empty are 0 and do not.
inline bool chunk_is_active(const HeadTask& task, const TileRequest& request, IndexRange positions,
                            int64_t chunk) {
  const Mask& mask = task.problem->mask();
  if (mask.is_none() || request.quantity == Quantity::logits) return true;
  return mask.classify(task.batch, task.head, row_span(task, positions),
                       chunk_keys(task, request, chunk)) != TileClass::empty;
}

/// Whether weights need row normalisers before they can be written.
inline bool needs_norms(const HeadTask& task, const TileRequest& request) {
  return request.quantity == Quantity::weights && is_normalised(task.problem->score());
}

/// Buffers are whole pages, so that a plan's bytes are what is resident.
constexpr int64_t kBufferAlignment = 4096;
inline int64_t buffer_bytes(int64_t bytes) { return round_up(bytes, kBufferAlignment); }

}  // namespace attnscope
