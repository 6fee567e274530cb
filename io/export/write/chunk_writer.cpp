#include "io/export/write/chunk_writer.h"

#include <cassert>
#include <cstring>
#include <vector>

#include "io/files/checksum.h"

namespace attnscope {
namespace {

/// The checksum of a chunk of zeros, computed at its first use.
class ZeroChecksum {
 public:
  explicit ZeroChecksum(int64_t bytes) : bytes_(bytes) {}
  uint32_t value() {
    if (!known_) value_ = checksum(std::vector<std::byte>(static_cast<size_t>(bytes_)));
    known_ = true;
    return value_;
  }

 private:
  int64_t bytes_;
  bool known_ = false;
  uint32_t value_ = 0;
};

}  // namespace

void narrow_chunk(const std::byte* source, int64_t source_cols, const ChunkGrid& grid,
                  std::byte* destination) {
  const auto row = static_cast<size_t>(grid.chunk_cols * grid.element_bytes);
  for (int64_t r = 0; r < grid.chunk_rows; ++r) {
    std::memcpy(destination + static_cast<size_t>(r) * row,
                source + r * source_cols * grid.element_bytes, row);
  }
}

WrittenChunks write_chunks(const OutputFile& file, const ChunkTarget& target, const ChunkRun& run,
                           const WriteSmall& small) {
  const ChunkGrid& grid = target.grid;
  const int64_t bytes = grid.chunk_bytes();
  const auto size = static_cast<size_t>(bytes);
  const int64_t first = grid.chunk_number(run.head, run.row_chunk, run.first_col_chunk);
  const bool narrow = run.tile_chunk_cols != grid.chunk_cols;
  assert(run.first_col_chunk + static_cast<int64_t>(run.chunks.size()) <= grid.col_chunks());
  std::vector<std::byte> scratch(narrow ? size : 0);
  std::vector<uint32_t> checksums(run.chunks.size());
  ZeroChecksum zeros(bytes);
  int64_t written = 0;
  for (size_t i = 0; i < run.chunks.size();) {
    const std::byte* start = run.chunks[i];
    if (start == nullptr) {
      checksums[i++] = zeros.value();
      continue;
    }
    const int64_t offset = target.base + (first + static_cast<int64_t>(i)) * bytes;
    if (narrow) {
      narrow_chunk(start, run.tile_chunk_cols, grid, scratch.data());
      start = scratch.data();
    }
    size_t count = 0;
    do {
      checksums[i++] = checksum({start + count * size, size});
      ++count;
    } while (!narrow && i < run.chunks.size() && run.chunks[i] == start + count * size);
    file.write_at({start, count * size}, offset);
    written += static_cast<int64_t>(count) * bytes;
  }
  small(std::as_bytes(std::span(checksums)),
        target.checksum_base + first * static_cast<int64_t>(sizeof(uint32_t)));
  return {written, std::move(checksums)};
}

}  // namespace attnscope
