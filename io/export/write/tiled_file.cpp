#include "io/export/write/tiled_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_marks.h"
#include "io/export/format/export_plan.h"
#include "io/export/format/tile_check.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/export_skeleton.h"
#include "io/files/rank_files.h"

namespace attnscope {

TiledFile::TiledFile(const ExportSpec& spec, const ExportLayout& layout, std::filesystem::path out,
                     const ExportWriteOptions& options)
    : layout_(layout),
      sync_(options.sync),
      commits_(options.commits),
      // Before the lock: where memory runs out the JSON library may end the process.
      header_(make_export_header(make_manifest(spec, layout, {}))),
      file_(std::move(out), options.for_file(least_export_bytes(layout))) {
  stored_ = make_manifest(spec, layout, {});
  resume_.complete = is_complete_already(file_, stored_, options);
  if (resume_.complete) {
    remove_replaced();
    return;
  }
  const auto old = take_up_same_export(file_, RunForm::tiles, stored_);
  if (old) {
    take_up(*old, options.verify_all);
  } else {
    start_afresh(spec);
  }
}

TiledFile::~TiledFile() {
  try {
    suspend();
  } catch (const std::exception&) {
    // Whoever wants to know calls suspend().
  }
}

void TiledFile::start_afresh(const ExportSpec& spec) {
  const ExportPlaces places = write_export_skeleton(spec, layout_, file_.new_part_path());
  set_stored(make_manifest(spec, layout_, places));
  file_.open_new_part(places.file_bytes);
  const uint64_t sum = structure_checksum(stored_, file_.data());
  file_.write_at(std::as_bytes(std::span(&sum, 1)), stored_.structure);
  file_.publish_part();
  open_journal(file_.journal_path(), ExportJournal::create(file_.journal_path(), header_, sync_));
}

void TiledFile::set_stored(ExportManifest stored) {
  stored_ = std::move(stored);
  places_ = stored_.tasks();
  before_.emplace(stored_);
}

void TiledFile::open_journal(const std::filesystem::path& path, const JournalEnd& end) {
  const auto make_durable = [this] {
    // A resume must not believe tiles that were made of other bytes than the hash is of.
    file_.require_source_reads_unchanged();
    file_.sync_data();
    if (sums_) sums_->sync();
  };
  journal_.emplace(path, end, sync_, make_durable, commits_);
}

void TiledFile::take_up(const JournalContent& old, bool verify_all) {
  file_.reopen_part();
  ExportManifest there = read_manifest(file_.part_path());
  if (!same_shape(there, stored_) || !has_sound_structure(there, file_.data())) {
    throw file_error(file_.part_path().string(), "",
                     "its structure is damaged; --force alone starts afresh");
  }
  set_stored(std::move(there));
  std::vector<JournalContent> journals = left_by_ranks();
  journals.insert(journals.begin(), old);
  const auto kept = sound_records(journals, verify_all);
  resume_.resumed = true;
  resume_.tiles_kept = before_->done();
  // A run without syncs may have written the journal ahead of the data.
  file_.sync_data();
  JournalEnd end = old.end;
  if (resume_.tiles_dropped > 0 || journals.size() > 1) {
    // The next run must not believe the records that turned out bad either.
    end = ExportJournal::create(file_.journal_path(), old.header, sync_, kept);
  }
  file_.remove_rank_files();
  open_journal(file_.journal_path(), end);
}

/// Reads the journals of an interrupted run's other processes, and puts their small pieces in.
std::vector<JournalContent> TiledFile::left_by_ranks() const {
  std::vector<JournalContent> journals;
  for (const int rank : ranks_beside(file_.out())) {
    const std::filesystem::path path = rank_journal_path(file_.out(), rank);
    auto journal = read_journal(path);
    if (!journal) continue;  // it ended before it had one
    const std::string text = header_difference(journal->header, stored_, path.string());
    if (!text.empty()) {
      throw file_error(path.string(), "",
                       "belongs to another export: " + text + " (--force alone gives it up)");
    }
    replay_sums(rank_sums_path(file_.out(), rank), file_.data());
    journals.push_back(std::move(*journal));
  }
  return journals;
}

/// The records that can be believed, marked in `before`; as many of the newest as make a GiB are
/// read back, or all. Journals that were written at once count as if one had come after the other.
std::vector<JournalRecord> TiledFile::sound_records(std::span<const JournalContent> journals,
                                                    bool all) {
  TileReader reader(stored_, file_.data());
  std::vector<JournalRecord> kept;
  for (size_t j = journals.size(); j-- > 0;) {
    const bool all_of_it = all || machine_restarted_since(journals[j].header);
    for (size_t i = journals[j].records.size(); i-- > 0;) {
      const JournalRecord& record = journals[j].records[i];
      const bool check = all_of_it || resume_.bytes_checked < kRecheckBytes;
      if (!before_->fits(record) || (check && !reader.holds(record, resume_.bytes_checked))) {
        resume_.tiles_dropped += layout_.has_entries() ? record.chunks : record.rows;
        continue;
      }
      before_->add(record);
      kept.push_back(record);
    }
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

void TiledFile::write_small(std::span<const std::byte> bytes, int64_t place) {
  if (sums_) return sums_->add(bytes, place);
  file_.write_at(bytes, place);
}

bool TiledFile::has_lse_row(int64_t task, int64_t row) const {
  if (!layout_.has_entries()) return before_->has_row(task, row);
  return before_->has_chunk(task, row / place(task).group->grid.chunk_rows, 0);
}

void TiledFile::add(const JournalRecord& record, int64_t bytes, int64_t tiles) {
  file_.keep_partial();
  journal_->add(record, bytes, tiles);
}

int64_t TiledFile::tiles_kept() const {
  return resume_.tiles_kept + (journal_ ? journal_->tiles_committed() : committed_);
}

void TiledFile::close_journal() {
  committed_ = journal_->tiles_committed();
  journal_.reset();
}

void TiledFile::suspend() {
  if (journal_) journal_->flush();
}

void TiledFile::end(int64_t tiles_done) {
  require_all_tiles(file_, tiles_done, before_->total());
  // The mark must never be durable before what it vouches for.
  journal_->flush();
  file_.require_sources_unchanged();
  const std::byte complete{1};
  file_.write_at({&complete, 1}, stored_.complete);
  close_journal();
  replaced_.note(file_, recorded_structure_checksum(stored_, file_.data()), sync_);
  file_.commit();
  if (shared_) file_.remove_rank_files();
  remove_replaced();
}

void TiledFile::remove_replaced() {
  const std::string note = replaced_.remove(file_);
  if (!note.empty()) notes_.push_back(note);
}

}  // namespace attnscope
