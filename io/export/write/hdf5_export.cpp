#include "io/export/write/hdf5_export.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <optional>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/completed_tiles.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_journal.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/tile_check.h"
#include "io/export/write/chunk_writer.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/export_skeleton.h"
#include "io/export/write/lse_writer.h"
#include "io/export/write/replaced_shards.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

// Tiles, LSEs and checksums go from memory to the file as they are.
static_assert(std::endian::native == std::endian::little);

class Hdf5Export final : public ExportSink {
 public:
  Hdf5Export(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options);
  ~Hdf5Export() override;

  const ExportResume& resume() const override { return resume_; }
  const std::vector<std::string>& warnings() const override { return file_.warnings(); }
  const std::vector<std::string>& notes() const override { return notes_; }
  std::span<const HeadTask> tasks() const override { return plan_.tasks; }
  bool has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const override;
  void suspend() override;
  std::filesystem::path partial_path() const override { return file_.part_path(); }
  int64_t tiles_done() const override { return tiles_done_; }
  int64_t tiles_total() const override { return before_ ? before_->total() : 0; }
  int64_t bytes_written() const override { return bytes_; }

  TileRequest request() const override { return plan_.request(); }
  void begin(std::span<const HeadTask> tasks, int workers) override;
  void consume(const Tile& tile) override;
  void end() override;

 private:
  void remove_replaced();
  void start_afresh();
  void take_up(const JournalContent& old, bool verify_all);
  void set_stored(ExportManifest stored);
  void open_journal(const JournalEnd& end);
  std::vector<JournalRecord> sound_records(const JournalContent& old, bool all);
  void restore_lse();
  bool has_lse_row(int64_t task, int64_t row) const;
  LseTarget lse_target(const ExportManifest::TaskPlace& place) const;
  WrittenChunks write_entries(const Tile& tile, const ExportManifest::TaskPlace& place);
  void consume_entries(const Tile& tile, const ExportManifest::TaskPlace& place);
  void consume_norms(const Tile& tile, const ExportManifest::TaskPlace& place);

  const ExportPlan plan_;
  bool sync_;
  JournalCommits commits_;
  std::string header_;  ///< of the journal
  OutputFile file_;
  ExportResume resume_;
  std::vector<std::string> notes_;
  ExportManifest stored_;
  std::vector<ExportManifest::TaskPlace> task_places_;  ///< point into stored_
  std::optional<CompletedTiles> before_;  ///< what earlier runs completed; fixed once tiles come
  LseWriter lse_writer_{file_};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> tiles_done_{0};
  std::optional<ExportJournal> journal_;  ///< last: its thread uses file_
};

Hdf5Export::Hdf5Export(ExportPlan plan, std::filesystem::path out,
                       const ExportWriteOptions& options)
    : plan_(std::move(plan)),
      sync_(options.sync),
      commits_(options.commits),
      // Before the lock: where memory runs out the JSON library may end the process.
      header_(make_export_header(make_manifest(plan_.spec, plan_.layout, {}))),
      file_(std::move(out), options.for_file(least_export_bytes(plan_.layout))) {
  stored_ = make_manifest(plan_.spec, plan_.layout, {});
  resume_.complete = is_complete_already(file_, stored_, options);
  if (resume_.complete) {
    remove_replaced();
    return;
  }
  const auto old = take_up_same_export(file_, RunForm::tiles, stored_);
  if (old) {
    take_up(*old, options.verify_all);
  } else {
    start_afresh();
  }
  if (threads_at_disk(plan_, options) > 0) file_.bypass_page_cache();
}

Hdf5Export::~Hdf5Export() {
  try {
    suspend();
  } catch (const std::exception&) {
    // Whoever wants to know calls suspend().
  }
}

void Hdf5Export::start_afresh() {
  const ExportPlaces places =
      write_export_skeleton(plan_.spec, plan_.layout, file_.new_part_path());
  set_stored(make_manifest(plan_.spec, plan_.layout, places));
  file_.open_new_part(places.file_bytes);
  const uint64_t sum = structure_checksum(stored_, file_.data());
  file_.write_at(std::as_bytes(std::span(&sum, 1)), stored_.structure);
  file_.publish_part();
  open_journal(ExportJournal::create(file_.journal_path(), header_, sync_));
}

void Hdf5Export::set_stored(ExportManifest stored) {
  stored_ = std::move(stored);
  task_places_ = stored_.tasks();
  before_.emplace(stored_);
}

void Hdf5Export::open_journal(const JournalEnd& end) {
  const auto make_durable = [this] {
    // What was computed from other bytes than those of the hash must not be believed by a resume.
    file_.require_source_reads_unchanged();
    file_.sync_data();
  };
  journal_.emplace(file_.journal_path(), end, sync_, make_durable, commits_);
}

void Hdf5Export::take_up(const JournalContent& old, bool verify_all) {
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
  tiles_done_ = before_->done();
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
  restore_lse();
}

/// The records that can be believed, marked in `before`; as many of the newest as make a GiB are
/// read back, or all.
std::vector<JournalRecord> Hdf5Export::sound_records(const JournalContent& old, bool all) {
  TileReader reader(stored_, file_.data());
  std::vector<JournalRecord> kept;
  for (size_t i = old.records.size(); i-- > 0;) {
    const JournalRecord& record = old.records[i];
    const bool check = all || resume_.bytes_checked < kRecheckBytes;
    if (!before_->fits(record) || (check && !reader.holds(record, resume_.bytes_checked))) {
      resume_.tiles_dropped += plan_.layout.has_entries() ? record.chunks : record.rows;
      continue;
    }
    before_->add(record);
    kept.push_back(record);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

LseTarget Hdf5Export::lse_target(const ExportManifest::TaskPlace& place) const {
  const GroupPlaces& at = place.group->places;
  const int64_t rows = place.group->grid.rows;
  return {at.lse + place.head * rows * 4, at.lse_checksums + place.head * 4, rows};
}

bool Hdf5Export::has_lse_row(int64_t task, int64_t row) const {
  if (!plan_.layout.has_entries()) return before_->has_row(task, row);
  const ChunkGrid& grid = task_places_[static_cast<size_t>(task)].group->grid;
  return before_->has_chunk(task, row / grid.chunk_rows, 0);
}

/// Gives the LSEs of earlier runs to the writer of their heads' checksums.
void Hdf5Export::restore_lse() {
  for (size_t t = 0; t < task_places_.size(); ++t) {
    const ExportManifest::TaskPlace& place = task_places_[t];
    const auto task = static_cast<int64_t>(t);
    const int64_t rows = place.group->has_lse ? place.group->grid.rows : 0;
    for (int64_t row = 0; row < rows;) {
      int64_t end = row;
      while (end < rows && has_lse_row(task, end)) ++end;
      if (end > row) lse_writer_.restore(task, lse_target(place), row, end - row);
      row = std::max(end, row + 1);
    }
  }
}

WrittenChunks Hdf5Export::write_entries(const Tile& tile, const ExportManifest::TaskPlace& place) {
  const TileRequest& request = plan_.layout.request;
  const ChunkGrid& grid = place.group->grid;
  const GroupPlaces& at = place.group->places;
  assert(tile.rows.begin % request.chunk_rows == 0 &&
         tile.rows.end == std::min(tile.rows.begin + grid.chunk_rows, grid.rows) &&
         "a tile must have whole rows of chunks");
  const int64_t first = tile.cols.begin / request.chunk_cols;
  assert(tile.cols.begin % request.chunk_cols == 0 && tile.cols.end > tile.cols.begin &&
         first + std::ssize(tile.chunks) == ceil_div(tile.cols.end, request.chunk_cols) &&
         "a tile must have whole chunks");
  const ChunkTarget target{grid, at.entries, at.entries_checksums};
  const std::vector<const std::byte*> chunks(tile.chunks.begin(), tile.chunks.end());
  return write_chunks(
      file_, target,
      {place.head, tile.rows.begin / request.chunk_rows, first, request.chunk_cols, chunks});
}

/// A tile of an export with entries: its chunks, and its LSEs where it is the first of its rows.
void Hdf5Export::consume_entries(const Tile& tile, const ExportManifest::TaskPlace& place) {
  const WrittenChunks written = write_entries(tile, place);
  const int64_t row_chunk = tile.rows.begin / plan_.layout.request.chunk_rows;
  const int64_t first = tile.cols.begin / plan_.layout.request.chunk_cols;
  const auto count = static_cast<int64_t>(tile.chunks.size());
  const bool lse = place.group->has_lse && tile.first_segment;
  std::vector<float> values;
  if (lse) {
    assert(std::ssize(tile.norms) == tile.rows.size() && "each row of a tile has a norm");
    if (has_lse_row(tile.task_index, tile.rows.begin)) {
      for (const RowNorm& norm : tile.norms) values.push_back(static_cast<float>(norm.lse()));
    } else {
      values = lse_writer_.write(tile.task_index, lse_target(place), tile.rows.begin, tile.norms);
    }
  }
  const int64_t data = written.bytes + static_cast<int64_t>(values.size()) * 4;
  bytes_ += data;
  file_.keep_partial();
  journal_->add({tile.task_index, tile.rows.begin, static_cast<int32_t>(tile.rows.size()),
                 static_cast<int32_t>(first), static_cast<int32_t>(count), lse ? kJournalHasLse : 0,
                 record_checksum(written.checksums, values)},
                data);
  tiles_done_ += count - before_->count_chunks(tile.task_index, row_chunk, {first, first + count});
}

/// A tile of an export of LSEs alone: those of its rows that are not there yet.
void Hdf5Export::consume_norms(const Tile& tile, const ExportManifest::TaskPlace& place) {
  assert(std::ssize(tile.norms) == tile.rows.size() && "each row of a tile has a norm");
  for (int64_t row = tile.rows.begin; row < tile.rows.end;) {
    int64_t end = row;
    while (end < tile.rows.end && !before_->has_row(tile.task_index, end)) ++end;
    if (end > row) {
      const auto count = static_cast<size_t>(end - row);
      const auto norms = tile.norms.subspan(static_cast<size_t>(row - tile.rows.begin), count);
      const auto values = lse_writer_.write(tile.task_index, lse_target(place), row, norms);
      bytes_ += (end - row) * 4;
      file_.keep_partial();
      journal_->add({tile.task_index, row, static_cast<int32_t>(end - row), 0, 0, kJournalHasLse,
                     record_checksum({}, values)},
                    (end - row) * 4);
      tiles_done_ += end - row;
    }
    row = std::max(end, row + 1);
  }
}

bool Hdf5Export::has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const {
  if (!resume_.resumed) return false;
  const TileRequest& request = plan_.layout.request;
  if (!request.entries) return before_->count_rows(task_index, rows) == rows.size();
  const IndexRange chunks{cols.begin / request.chunk_cols, ceil_div(cols.end, request.chunk_cols)};
  const int64_t row_chunk = rows.begin / request.chunk_rows;
  return before_->count_chunks(task_index, row_chunk, chunks) == chunks.size();
}

void Hdf5Export::begin([[maybe_unused]] std::span<const HeadTask> tasks, int) {
  assert(tasks.data() == plan_.tasks.data() && tasks.size() == plan_.tasks.size());
  assert(journal_ && "the export is complete");
}

void Hdf5Export::consume(const Tile& tile) {
  const ExportManifest::TaskPlace& place = task_places_[static_cast<size_t>(tile.task_index)];
  if (plan_.layout.has_entries()) return consume_entries(tile, place);
  consume_norms(tile, place);
}

void Hdf5Export::suspend() {
  if (journal_) journal_->flush();
}

void Hdf5Export::end() {
  require_all_tiles(file_, tiles_done_, before_->total());
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

void Hdf5Export::remove_replaced() {
  const std::string note = remove_replaced_shards(file_);
  if (!note.empty()) notes_.push_back(note);
}

}  // namespace

int threads_at_disk(const ExportPlan& plan, const ExportWriteOptions& options) {
  // As many pieces as a disk has to have at hand to be at its best.
  constexpr int kThreads = 4;
  const bool tiles = plan.layout.has_entries() && !plan.spec.is_sharded();
  if (!tiles || !options.sync) return 0;
  return estimate_export(plan).payload_bytes < options.direct_bytes ? 0 : kThreads;
}

std::unique_ptr<ExportSink> make_hdf5_export(ExportPlan plan, std::filesystem::path out,
                                             const ExportWriteOptions& options) {
  return std::make_unique<Hdf5Export>(std::move(plan), std::move(out), options);
}

}  // namespace attnscope
