#include "io/export/write/tiled_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_plan.h"
#include "io/export/format/tile_check.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/export_skeleton.h"
#include "io/export/write/replaced_shards.h"

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
  open_journal(ExportJournal::create(file_.journal_path(), header_, sync_));
}

void TiledFile::set_stored(ExportManifest stored) {
  stored_ = std::move(stored);
  places_ = stored_.tasks();
  before_.emplace(stored_);
}

void TiledFile::open_journal(const JournalEnd& end) {
  const auto make_durable = [this] {
    // What was made of other bytes than those of the hash must not be believed by a resume.
    file_.require_source_reads_unchanged();
    file_.sync_data();
  };
  journal_.emplace(file_.journal_path(), end, sync_, make_durable, commits_);
}

void TiledFile::take_up(const JournalContent& old, bool verify_all) {
  file_.reopen_part();
  ExportManifest there = read_manifest(file_.part_path());
  if (!same_shape(there, stored_) ||
      structure_checksum(there, file_.data()) != recorded_structure_checksum(there, file_.data())) {
    throw file_error(file_.part_path().string(), "",
                     "its structure is damaged; --force alone starts afresh");
  }
  set_stored(std::move(there));
  const auto kept = sound_records(old, verify_all || machine_restarted_since(old.header));
  resume_.resumed = true;
  resume_.tiles_kept = before_->done();
  // A run without syncs may have written the journal ahead of the data.
  file_.sync_data();
  if (resume_.tiles_dropped == 0) {
    open_journal(old.end);
  } else {
    // What turned out bad must not be believed by the next run either.
    open_journal(ExportJournal::create(file_.journal_path(), old.header, sync_));
    for (const JournalRecord& record : kept) journal_->add(record, 0);
    journal_->flush();
  }
}

/// The records that can be believed, marked in `before`; as many of the newest as make a GiB are
/// read back, or all.
std::vector<JournalRecord> TiledFile::sound_records(const JournalContent& old, bool all) {
  TileReader reader(stored_, file_.data());
  std::vector<JournalRecord> kept;
  for (size_t i = old.records.size(); i-- > 0;) {
    const JournalRecord& record = old.records[i];
    const bool check = all || resume_.bytes_checked < kRecheckBytes;
    if (!before_->fits(record) || (check && !reader.holds(record, resume_.bytes_checked))) {
      resume_.tiles_dropped += layout_.has_entries() ? record.chunks : record.rows;
      continue;
    }
    before_->add(record);
    kept.push_back(record);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

bool TiledFile::has_lse_row(int64_t task, int64_t row) const {
  if (!layout_.has_entries()) return before_->has_row(task, row);
  return before_->has_chunk(task, row / place(task).group->grid.chunk_rows, 0);
}

void TiledFile::add(const JournalRecord& record, int64_t bytes) {
  file_.keep_partial();
  journal_->add(record, bytes);
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
  journal_.reset();
  note_replaced_shards(file_, sync_);
  file_.commit();
  remove_replaced();
}

void TiledFile::remove_replaced() {
  const std::string note = remove_replaced_shards(file_);
  if (!note.empty()) notes_.push_back(note);
}

}  // namespace attnscope
