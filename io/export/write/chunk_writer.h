#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "io/export/format/export_layout.h"
#include "io/files/output_file.h"

namespace attnscope {

/// Where one dataset's chunks and their checksums go.
struct ChunkTarget {
  ChunkGrid grid;
  int64_t base = 0;           ///< of chunk 0
  int64_t checksum_base = 0;  ///< of chunk 0's checksum
};

/// Chunks as a tile brings them: neighbours in one row of chunks, each [stride_rows, stride_cols]
/// packed; null where all entries are 0.
struct ChunkRun {
  int64_t head = 0;
  int64_t row_chunk = 0;
  int64_t first_col_chunk = 0;
  int64_t tile_chunk_cols = 0;  ///< columns of a chunk in memory, ≥ the grid's chunk_cols
  std::span<const std::byte* const> chunks;
};

/// Writes small pieces of a file, checksums and LSEs, to a place: by itself, or by leaving them to
/// whom these pages of the file belong. Thread-safe.
using WriteSmall = std::function<void(std::span<const std::byte> bytes, int64_t place)>;

/// The result of write_chunks().
struct WrittenChunks {
  int64_t bytes = 0;                ///< of entries
  std::vector<uint32_t> checksums;  ///< of each chunk
};

/// Copies a chunk as it is in memory, `source_cols` columns wide, to one of the grid's.
void narrow_chunk(const std::byte* source, int64_t source_cols, const ChunkGrid& grid,
                  std::byte* destination);

/// Writes the chunks to their places, what is contiguous in memory and in the file with one call,
/// and a checksum for each by `small`. Null chunks are not written: the file has zeros there.
/// Thread-safe. Throws what OutputFile::write_at throws.
WrittenChunks write_chunks(const OutputFile& file, const ChunkTarget& target, const ChunkRun& run,
                           const WriteSmall& small);

}  // namespace attnscope
