#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/export/format/completed_tiles.h"
#include "io/export/format/export_journal.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/sums_log.h"
#include "io/export/write/export_sink.h"
#include "io/export/write/replaced_shards.h"
#include "io/export/write/shared_export.h"
#include "io/files/output_file.h"

namespace attnscope {

/// The life of an export that is one file with its entries at known places: built with all its
/// structure as OUT.part, filled with write_at, told piece by piece to OUT.journal, resumed, marked
/// complete and given its name. What fills it, maps that are computed or parts that are joined, is
/// somebody else's. Commits by itself (ExportWriteOptions::commits); when it is destroyed before
/// end(), what was added is committed, and stays for `resume` unless it was nothing.
/// file(), add() and the const members are thread-safe.
class TiledFile {
 public:
  /// Borrows spec and layout. Throws what make_hdf5_export() throws.
  TiledFile(const ExportSpec& spec, const ExportLayout& layout, std::filesystem::path out,
            const ExportWriteOptions& options);
  /// Of a file that another process made and `rank` joins (join_shared_export).
  TiledFile(const ExportSpec& spec, const ExportLayout& layout, std::filesystem::path out,
            const ExportWriteOptions& options, const ExportInvitation& invitation, int rank);
  TiledFile(const TiledFile&) = delete;
  TiledFile& operator=(const TiledFile&) = delete;
  ~TiledFile();

  OutputFile& file() { return file_; }
  const OutputFile& file() const { return file_; }
  const ExportResume& resume() const { return resume_; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// The file as it stands, unless OUT is complete already; so it is of those that follow.
  const ExportManifest& stored() const { return stored_; }
  const ExportManifest::TaskPlace& place(int64_t task) const {
    return places_[static_cast<size_t>(task)];
  }
  const std::vector<ExportManifest::TaskPlace>& places() const { return places_; }
  /// The tiles that earlier runs completed.
  const CompletedTiles& before() const { return *before_; }
  /// True where earlier runs completed the LSE of a row.
  bool has_lse_row(int64_t task, int64_t row) const;

  /// Writes a small piece (WriteSmall): to the file, or where others are to put it in.
  void write_small(std::span<const std::byte> bytes, int64_t place);
  /// A piece of `bytes` bytes has been written, which counts as so many tiles. Throws what
  /// ExportJournal::add() throws.
  void add(const JournalRecord& record, int64_t bytes, int64_t tiles = 0);
  /// Tiles of earlier runs, and of those that were added the committed ones.
  int64_t tiles_kept() const;
  /// Commits everything that was added. Throws Error(file).
  void suspend();
  /// Marks the file complete and gives it its name. `tiles_done` counts those of before() as well;
  /// throws Error(file) where some are missing.
  void end(int64_t tiles_done);

  /// SharedExport's; gather() is the first half of its finish().
  ExportInvitation invite();
  int64_t hand_in();
  void gather(const PromisedSums& left);

 private:
  void remove_replaced();
  void start_afresh(const ExportSpec& spec);
  void take_up(const JournalContent& old, bool verify_all);
  std::vector<JournalContent> left_by_ranks() const;
  void set_stored(ExportManifest stored);
  void open_journal(const std::filesystem::path& path, const JournalEnd& end);
  void close_journal();
  std::vector<JournalRecord> sound_records(std::span<const JournalContent> journals, bool all);

  const ExportLayout& layout_;
  const bool sync_;
  const JournalCommits commits_;
  const std::string header_;  ///< of the journal
  bool shared_ = false;       ///< others write to it as well
  OutputFile file_;
  ExportResume resume_;
  ReplacedShards replaced_;
  std::vector<std::string> notes_;
  ExportManifest stored_;
  std::vector<ExportManifest::TaskPlace> places_;  ///< point into stored_
  std::optional<CompletedTiles> before_;
  int64_t committed_ = 0;                 ///< tiles, when there is no journal any more
  std::optional<SumsLog> sums_;           ///< of a process that joined
  std::optional<ExportJournal> journal_;  ///< last: its thread uses file_
};

}  // namespace attnscope
