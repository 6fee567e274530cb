#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "io/export/format/export_manifest.h"
#include "io/files/input_file.h"
#include "io/tensors/hdf5_chunk_index.h"
#include "io/tensors/hdf5_chunks.h"

namespace attnscope {

struct HelperQuestion;

/// A shard file of compressed maps, open. The HDF5 library tells its structure, in the helper
/// process, once; chunks are found, read and unpacked here. Immutable; thread-safe.
class StoredShard {
 public:
  /// Throws Error(file) where the file is no shard of the group `name`.
  StoredShard(const std::filesystem::path& path, const std::string& name);

  const std::filesystem::path& path() const { return file_->path(); }
  /// Its entries and their checksums have no places.
  const StoredGroup& group() const { return group_; }

  /// One chunk as it would stand uncompressed, [chunk_rows, chunk_cols], from the cache where it
  /// has it; zeros where it was left out. Throws Error(file) naming file, dataset and chunk where
  /// that is not what was written.
  ChunkCache::Bytes chunk(ChunkCache& cache, int64_t head, int64_t row_chunk,
                          int64_t col_chunk) const;
  /// Bytes that chunk() takes on top of the cache and its result.
  int64_t unpacking_bytes() const { return 2 * packing_.chunk_bytes; }

  float lse(int64_t head, int64_t row) const;
  /// True where the LSEs of a head match their checksum.
  bool lse_holds(int64_t head) const;

 private:
  std::vector<std::byte> read_chunk(int64_t number, const std::string& where) const;

  std::shared_ptr<const InputFile> file_;
  StoredGroup group_;
  ChunkPacking packing_;
  int64_t checksums_ = 0;  ///< where those of the chunks stand
  std::optional<Hdf5ChunkIndex> index_;
};

/// The question that StoredShard asks the helper process (io/helper): the structure of a shard.
extern const HelperQuestion kShardQuestion;

}  // namespace attnscope
