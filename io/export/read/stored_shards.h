#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/index_range.h"
#include "io/export/format/export_manifest.h"

namespace attnscope {

/// The group of a shard file of compressed maps; its entries have no places. Read in a child
/// process. Throws Error(file) where the file is no such shard.
StoredGroup read_shard_group(const std::filesystem::path& shard, const std::string& name);

/// Compressed chunks, unpacked by the HDF5 library in a child process, some neighbours in a row at
/// a time; the last ones are kept, 16 MiB at most (or a chunk). deflate's own checksum guards each
/// chunk; chunks that were left out are zeros, as the library says. Thread-safe; one child at a
/// time.
class CompressedChunks {
 public:
  /// Bytes that are kept, and that a call takes on top, for chunks of this size.
  static int64_t kept_bytes(const ChunkGrid& grid);

  /// One chunk as it would stand uncompressed, [chunk_rows, chunk_cols], zeros beyond the edges.
  /// Throws Error(file).
  std::vector<std::byte> chunk(const std::filesystem::path& shard, const StoredGroup& group,
                               int64_t head, int64_t row_chunk, int64_t col_chunk);

 private:
  struct WorkItem {
    std::filesystem::path shard;
    int64_t head = 0, row_chunk = 0, first_chunk = 0;
    IndexRange cols;
    std::string bytes;  ///< [rows that exist, cols]
  };
  const WorkItem& piece(const std::filesystem::path& shard, const StoredGroup& group, int64_t head,
                        int64_t row_chunk, int64_t first_chunk);

  std::mutex mutex_;
  std::list<WorkItem> pieces_;  ///< the one used last first
};

}  // namespace attnscope
