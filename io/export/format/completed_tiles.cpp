#include "io/export/format/completed_tiles.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "core/base/checked_math.h"

namespace attnscope {

CompletedTiles::CompletedTiles(const ExportManifest& stored) : places_(stored.tasks()) {
  for (const ExportManifest::TaskPlace& place : places_) {
    const ChunkGrid& grid = place.group->grid;
    first_.push_back(total_);
    total_ += place.group->entries_name.empty() ? grid.rows : grid.row_chunks() * grid.col_chunks();
  }
  bits_.assign(static_cast<size_t>(ceil_div(total_, 64)), 0);
}

void CompletedTiles::set(int64_t unit) {
  uint64_t& word = bits_[static_cast<size_t>(unit >> 6)];
  const uint64_t mask = uint64_t{1} << (unit & 63);
  done_ += (word & mask) == 0 ? 1 : 0;
  word |= mask;
}

bool CompletedTiles::fits(const JournalRecord& r) const {
  if (r.task < 0 || index(r.task) >= places_.size()) return false;
  const StoredGroup& group = *places_[index(r.task)].group;
  const ChunkGrid& grid = group.grid;
  if (r.rows <= 0 || r.row_begin < 0 || r.row_begin > grid.rows - r.rows) return false;
  const bool lse = (r.flags & kJournalHasLse) != 0;
  if (r.flags > kJournalHasLse) return false;
  if (group.entries_name.empty()) return lse && r.chunks == 0;
  const bool whole_rows = r.row_begin % grid.chunk_rows == 0 &&
                          r.rows == std::min(grid.chunk_rows, grid.rows - r.row_begin);
  const bool whole_chunks =
      r.chunks > 0 && r.first_chunk >= 0 && r.first_chunk <= grid.col_chunks() - r.chunks;
  if (!whole_rows || !whole_chunks) return false;
  return lse == (group.has_lse && r.first_chunk == 0);
}

void CompletedTiles::add(const JournalRecord& r) {
  assert(fits(r));
  const StoredGroup& group = *places_[index(r.task)].group;
  if (group.entries_name.empty()) {
    for (int64_t row = 0; row < r.rows; ++row) set(first_[index(r.task)] + r.row_begin + row);
    return;
  }
  const int64_t row_chunk = r.row_begin / group.grid.chunk_rows;
  for (int64_t c = 0; c < r.chunks; ++c) set(unit(r.task, row_chunk, r.first_chunk + c));
}

void CompletedTiles::set_words(std::vector<uint64_t> words) {
  assert(words.size() == bits_.size());
  bits_ = std::move(words);
  done_ = 0;
  for (const uint64_t word : bits_) done_ += std::popcount(word);
}

int64_t CompletedTiles::count_chunks(int64_t task, int64_t row_chunk, IndexRange cols) const {
  int64_t count = 0;
  for (int64_t c = cols.begin; c < cols.end; ++c) count += has_chunk(task, row_chunk, c) ? 1 : 0;
  return count;
}

int64_t CompletedTiles::count_rows(int64_t task, IndexRange rows) const {
  int64_t count = 0;
  for (int64_t row = rows.begin; row < rows.end; ++row) count += has_row(task, row) ? 1 : 0;
  return count;
}

}  // namespace attnscope
