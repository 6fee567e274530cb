#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/products/pooled_map.h"
#include "core/stream/weight_code.h"
#include "io/export/read/part_tiles.h"
#include "io/export/read/stored_facts.h"
#include "io/export/read/stored_shards.h"
#include "io/files/posix_file.h"

namespace attnscope {

class StoredMaps;

/// One head of an export.
struct StoredHead {
  const StoredGroup* group = nullptr;
  const StoredFacts* facts = nullptr;
  int64_t place = 0;  ///< among the group's heads
  int64_t task = 0;   ///< among all heads of the file
  int64_t batch = 0, head = 0;
  /// Of a master: the part that has the head, whose the group, facts, place and task are.
  const StoredMaps* part = nullptr;

  /// This head as its part has it: as one of an export of its own.
  StoredHead in_part() const {
    StoredHead own = *this;
    own.part = nullptr;
    return own;
  }
};

/// The entries of a map that lie under a rectangle and in one chunk.
struct ChunkPart {
  IndexRange rows;                ///< positions among StoredFacts::queries
  IndexRange keys;                ///< the capture's indices
  const float* values = nullptr;  ///< the first row's first; null: not in the file
  int64_t stride = 0;             ///< from row to row
};

/// The maps of an export (weights, rows, logits), also of an OUT.part: entries as numbers, and
/// which of them are there. Entries are read by our own pread; each chunk is held against its
/// checksum. Compressed ones are unpacked from their shards, those of a master read from its parts.
/// Immutable; thread-safe.
class StoredMaps {
 public:
  /// Throws Error(file) where the file is no export or damaged, Error(usage) where it holds no maps
  /// that can be read here.
  explicit StoredMaps(const std::filesystem::path& path);

  const ExportManifest& stored() const { return stored_; }
  const std::filesystem::path& path() const { return path_; }
  const std::vector<StoredHead>& heads() const { return heads_; }
  /// The bytes that chunk() holds beside its result.
  int64_t buffer_bytes(const StoredHead& head) const;
  bool is_logits() const { return stored_.product == "logits"; }
  /// How a head's entries are stored: "f32", "f16", "u8".
  std::string_view dtype_name(const StoredHead& head) const;

  /// True where the chunk is there.
  bool has_chunk(const StoredHead& head, int64_t row_chunk, int64_t col_chunk) const;
  /// One chunk as numbers, [chunk_rows, chunk_cols]; nothing where it is missing. Throws
  /// Error(file) naming call, head, rows and columns where it is not what was written.
  std::optional<std::vector<float>> chunk(const StoredHead& head, int64_t row_chunk,
                                          int64_t col_chunk) const;

  // Queries and keys are the capture's indices; those that were not exported are missing.

  using TakePart = std::function<void(const ChunkPart& part)>;
  /// Takes what was exported of queries × keys, chunk by chunk. Holds reading_bytes(), as the two
  /// below do. Throws what chunk() throws.
  void read(const StoredHead& head, IndexRange queries, IndexRange keys,
            const TakePart& take) const;
  int64_t reading_bytes(const StoredHead& head) const;
  /// True where anything of queries × keys is there; reads no entries.
  bool holds(const StoredHead& head, IndexRange queries, IndexRange keys) const;
  /// The entries of some queries, ascending, over a range of keys, row after row; NaN where they
  /// are missing. Whether none is.
  bool read_rows(const StoredHead& head, std::span<const int64_t> queries, IndexRange keys,
                 std::span<float> out) const;
  /// All exported keys of the row at this position; nothing where a part of it is missing.
  std::optional<std::vector<float>> row(const StoredHead& head, int64_t row) const;
  /// ln of the normaliser of the row at this position; NaN where the file has none, or not yet.
  /// Throws Error(file) where it is not what was written: the first LSE of a head reads all of its
  /// LSEs.
  double lse(const StoredHead& head, int64_t row) const;

 private:
  bool is_there(const StoredHead& head, int64_t row_chunk, int64_t col_chunk,
                uint32_t recorded) const;
  uint32_t recorded_checksum(const StoredHead& head, int64_t number) const;
  Encoding encoding_of(const StoredGroup& group) const;
  size_t group_of(const StoredHead& head) const {
    return static_cast<size_t>(head.group - groups_.data());
  }
  std::optional<std::vector<std::byte>> plain_chunk(const StoredHead& head, int64_t row_chunk,
                                                    int64_t col_chunk) const;
  std::string head_text(const StoredHead& head) const;
  bool has_sound_lse(const StoredHead& head, int64_t row) const;
  bool tile_holds(const StoredHead& head, const JournalRecord& record) const;
  std::string place_text(const StoredHead& head, int64_t row_chunk, int64_t col_chunk) const;
  void open_shards();
  void open_parts();

  const std::filesystem::path path_;
  const ExportManifest stored_;
  std::vector<StoredGroup> groups_;  ///< of the file, or of its shards
  std::vector<StoredShard> shards_;  ///< one a group; empty: none
  std::vector<StoredFacts> facts_;
  std::vector<std::unique_ptr<const StoredMaps>> parts_;
  std::vector<StoredHead> heads_;
  PosixFile file_;
  mutable ChunkCache unpacked_;  ///< of the shards
  bool complete_ = false, has_journal_ = false;
  std::optional<PartTiles> tiles_;
  mutable std::mutex lse_mutex_;
  /// Where LSEs were held against their checksum: task and first row.
  mutable std::set<std::pair<int64_t, int64_t>> sound_lse_;
};

/// A head's map in blocks, and which of them lack an entry.
struct StoredPooledMap {
  PooledMap map;
  std::vector<uint8_t> missing;  ///< [rows, cols] of the map; their values are NaN
  int64_t missing_cells = 0;
};

/// Largest entry and mean of block × block entries of queries × keys, all of which were exported.
/// Holds reading_bytes(), and 16 bytes a block.
StoredPooledMap pool_stored(const StoredMaps& maps, const StoredHead& head, IndexRange queries,
                            IndexRange keys, int64_t block);

}  // namespace attnscope
