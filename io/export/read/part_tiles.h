#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include "io/export/format/completed_tiles.h"
#include "io/export/format/export_manifest.h"

namespace attnscope {

/// Which tiles an OUT.part holds (or an OUT that is not complete), as the journals of all processes
/// that wrote it tell, with the checksums that others than the first left beside it for the first
/// to put in. Immutable; thread-safe.
class PartTiles {
 public:
  /// Of a file that is complete: nothing is looked for. Throws Error(file) where a journal cannot
  /// be read.
  PartTiles(const ExportManifest& stored, const std::filesystem::path& path, bool complete);

  /// True where OUT.journal is there; false of a file that is complete.
  bool has_journal() const { return has_journal_; }
  const CompletedTiles& tiles() const { return tiles_; }
  /// The tile that brought the LSE of a row, as the first process's journal tells: it holds its
  /// LSEs' checksum (record_checksum). Nothing where no tile did, or where its LSEs are not in the
  /// file yet.
  const JournalRecord* lse_record(int64_t task, int64_t row) const;
  /// Of checksums that were read from `place` on of the file, those that another process left.
  void put_in(std::span<uint32_t> sums, int64_t place) const;

 private:
  void add(const std::vector<JournalRecord>& records);

  CompletedTiles tiles_;
  bool has_journal_ = false;
  std::map<std::pair<int64_t, int64_t>, JournalRecord> lse_records_;  ///< by task and first row
  std::map<int64_t, uint32_t> left_;                                  ///< by place
};

}  // namespace attnscope
