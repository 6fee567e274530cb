#include "io/export/read/stored_rows.h"

#include <algorithm>
#include <limits>

namespace attnscope {

void read_stored_rows(const StoredMaps& maps, const StoredHead& head,
                      std::span<const int64_t> queries, IndexRange keys, std::span<float> out) {
  std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  const ChunkGrid& grid = head.group->grid;
  const StoredFacts& facts = *head.facts;
  const IndexRange held{std::max(keys.begin, facts.keys.begin), std::min(keys.end, facts.keys.end)};
  if (held.begin >= held.end) return;
  const auto row_of = [&](int64_t query) {
    return std::lower_bound(facts.queries.begin(), facts.queries.end(), query) -
           facts.queries.begin();
  };
  const int64_t first_col = held.begin - facts.keys.begin, end_col = held.end - facts.keys.begin;
  for (size_t first = 0; first < queries.size();) {
    // The rows of one row of chunks.
    const int64_t row_chunk = row_of(queries[first]) / grid.chunk_rows;
    size_t end = first + 1;
    while (end < queries.size() && row_of(queries[end]) / grid.chunk_rows == row_chunk) ++end;
    for (int64_t col = first_col / grid.chunk_cols; col * grid.chunk_cols < end_col; ++col) {
      const auto chunk = maps.chunk(head, row_chunk, col);
      if (!chunk) continue;
      const int64_t from = std::max(first_col, col * grid.chunk_cols);
      const int64_t to = std::min(end_col, (col + 1) * grid.chunk_cols);
      for (size_t i = first; i < end; ++i) {
        const int64_t row = row_of(queries[i]) - row_chunk * grid.chunk_rows;
        const auto* const entries =
            chunk->data() + row * grid.chunk_cols + (from - col * grid.chunk_cols);
        std::copy_n(entries, to - from,
                    out.begin() + static_cast<int64_t>(i) * keys.size() + from + facts.keys.begin -
                        keys.begin);
      }
    }
    first = end;
  }
}

int64_t stored_rows_bytes(const StoredMaps& maps, const StoredHead& head) {
  const ChunkGrid& grid = head.group->grid;
  return maps.buffer_bytes(head) +
         grid.chunk_rows * grid.chunk_cols * static_cast<int64_t>(sizeof(float));
}

}  // namespace attnscope
