#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index_range.h"
#include "io/export/format/export_journal.h"
#include "io/export/format/export_manifest.h"

namespace attnscope {

/// Which tiles of an export are complete, as its journal tells. A tile is a chunk of the entries,
/// with the LSEs of its rows where it is the first of them; where there are no entries, a row. One
/// bit a tile. Reading is thread-safe.
class CompletedTiles {
 public:
  /// None yet. Borrows `stored`.
  explicit CompletedTiles(const ExportManifest& stored);

  /// True where a record can be this export's.
  bool fits(const JournalRecord& record) const;
  /// Marks what a record speaks of, which must fit.
  void add(const JournalRecord& record);
  /// All of them, one bit a tile; and marks these instead, which are of the same export.
  const std::vector<uint64_t>& words() const { return bits_; }
  void set_words(std::vector<uint64_t> words);
  int64_t total() const { return total_; }
  int64_t done() const { return done_; }

  /// Chunks of one row of chunks that are complete.
  int64_t count_chunks(int64_t task, int64_t row_chunk, IndexRange col_chunks) const;
  bool has_chunk(int64_t task, int64_t row_chunk, int64_t col_chunk) const {
    return bit(unit(task, row_chunk, col_chunk));
  }
  /// Rows of an export without entries that are complete.
  int64_t count_rows(int64_t task, IndexRange rows) const;
  bool has_row(int64_t task, int64_t row) const { return bit(first_[index(task)] + row); }

 private:
  static size_t index(int64_t task) { return static_cast<size_t>(task); }
  int64_t unit(int64_t task, int64_t row_chunk, int64_t col_chunk) const {
    const ChunkGrid& grid = places_[index(task)].group->grid;
    return first_[index(task)] + row_chunk * grid.col_chunks() + col_chunk;
  }
  bool bit(int64_t unit) const {
    return (bits_[static_cast<size_t>(unit >> 6)] >> (unit & 63) & 1) != 0;
  }
  void set(int64_t unit);

  std::vector<ExportManifest::TaskPlace> places_;
  std::vector<int64_t> first_;  ///< of each task's tiles
  std::vector<uint64_t> bits_;
  int64_t total_ = 0;
  int64_t done_ = 0;
};

}  // namespace attnscope
