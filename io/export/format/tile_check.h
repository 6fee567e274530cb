#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/export/format/export_journal.h"
#include "io/export/format/export_manifest.h"
#include "io/files/posix_file.h"

namespace attnscope {

/// The checksum that a journal's record carries: of the checksums of its chunks and of its LSEs.
uint32_t record_checksum(std::span<const uint32_t> chunks, std::span<const float> lse);

/// Reads tiles of an export back and computes their checksums. Holds one chunk. Not thread-safe.
class TileReader {
 public:
  /// Borrows both.
  TileReader(const ExportManifest& stored, const PosixFile& file);

  /// Of one chunk as it stands in the file. Throws Error(file).
  uint32_t chunk_checksum(const StoredGroup& group, int64_t head, int64_t row_chunk,
                          int64_t col_chunk);
  std::vector<float> lse(const StoredGroup& group, int64_t head, IndexRange rows) const;
  /// True where the record's chunks and LSEs in the file still give its checksum; nothing else is
  /// checked. The record must fit the export (CompletedTiles::add). Adds the bytes read to `bytes`.
  bool holds(const JournalRecord& record, int64_t& bytes);

 private:
  const PosixFile& file_;
  std::vector<ExportManifest::TaskPlace> tasks_;
  std::vector<std::byte> chunk_;
};

}  // namespace attnscope
