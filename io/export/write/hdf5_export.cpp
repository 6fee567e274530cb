#include "io/export/write/hdf5_export.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <stdexcept>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/completed_tiles.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_journal.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/interrupted_run.h"
#include "io/export/format/tile_check.h"
#include "io/export/write/chunk_writer.h"
#include "io/export/write/export_skeleton.h"
#include "io/export/write/lse_writer.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

// Tiles, LSEs and checksums go from memory to the file as they are.
static_assert(std::endian::native == std::endian::little);

/// Resuming, so much of what was written last is read back.
constexpr int64_t kRecheckBytes = int64_t{1} << 30;

/// A broken contract between engine and sink is a defect of ours, and must not spoil a file.
void expect(bool condition, const char* what) {
  if (!condition) throw std::logic_error(std::string("Hdf5Export: ") + what);
}

}  // namespace

struct Hdf5Export::Impl {
  Impl(ExportPlan the_plan, std::filesystem::path out, const ExportWriteOptions& options);

  void start_afresh();
  void take_up(const JournalContent& old, bool verify_all);
  void set_stored(ExportManifest the_stored);
  void open_journal(const JournalEnd& end);
  std::vector<JournalRecord> sound_records(const JournalContent& old, bool all);
  void restore_lse();
  bool has_lse_row(int64_t task, int64_t row) const;
  LseTarget lse_target(const ExportManifest::TaskPlace& place) const;
  WrittenChunks write_entries(const Tile& tile, const ExportManifest::TaskPlace& place);
  static void check_norms(const Tile& tile, const ExportManifest::TaskPlace& place);
  void consume_entries(const Tile& tile, const ExportManifest::TaskPlace& place);
  void consume_norms(const Tile& tile, const ExportManifest::TaskPlace& place);

  const ExportPlan plan;
  bool sync;
  JournalCommits commits;
  std::string header;  ///< of the journal
  OutputFile file;
  ExportResume resume;
  ExportManifest stored;
  std::vector<ExportManifest::TaskPlace> task_places;  ///< point into stored
  std::optional<CompletedTiles> before;  ///< what earlier runs completed; fixed once tiles come
  LseWriter lse_writer{file};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> tiles_done{0};
  std::optional<ExportJournal> journal;  ///< last: its thread uses file
};

Hdf5Export::Impl::Impl(ExportPlan the_plan, std::filesystem::path out,
                       const ExportWriteOptions& options)
    : plan(std::move(the_plan)),
      sync(options.sync),
      commits(options.commits),
      // Before the lock: where memory runs out the JSON library may end the process.
      header(make_export_header(make_manifest(plan.spec, plan.layout, {}))),
      file(std::move(out), options.for_file(least_export_bytes(plan.layout))) {
  stored = make_manifest(plan.spec, plan.layout, {});
  std::error_code error;
  if (options.resume && !options.force && std::filesystem::exists(file.out(), error)) {
    const ExportManifest there = read_manifest(file.out());
    const std::string difference = content_difference(there, stored);
    if (!difference.empty()) {
      throw file_error(file.out().string(), "", "is another export: " + difference);
    }
    resume.complete = true;
    return;
  }
  const auto old = take_up_interrupted(file, RunForm::tiles, [this](const std::string& there) {
    return header_difference(there, stored, file.journal_path().string());
  });
  if (old) {
    take_up(*old, options.verify_all);
  } else {
    start_afresh();
  }
}

void Hdf5Export::Impl::start_afresh() {
  const ExportPlaces places = write_export_skeleton(plan.spec, plan.layout, file.new_part_path());
  set_stored(make_manifest(plan.spec, plan.layout, places));
  file.open_new_part(places.file_bytes);
  const uint64_t sum = structure_checksum(stored, file.data());
  file.write_at(std::as_bytes(std::span(&sum, 1)), stored.structure);
  file.publish_part();
  open_journal(ExportJournal::create(file.journal_path(), header, sync));
}

void Hdf5Export::Impl::set_stored(ExportManifest the_stored) {
  stored = std::move(the_stored);
  task_places = stored.tasks();
  before.emplace(stored);
}

void Hdf5Export::Impl::open_journal(const JournalEnd& end) {
  journal.emplace(
      file.journal_path(), end, sync, [this] { file.sync_data(); }, commits);
}

void Hdf5Export::Impl::take_up(const JournalContent& old, bool verify_all) {
  file.reopen_part();
  ExportManifest there = read_manifest(file.part_path());
  if (!same_shape(there, stored) ||
      structure_checksum(there, file.data()) != recorded_structure_checksum(there, file.data())) {
    throw file_error(file.part_path().string(), "",
                     "its structure is damaged; --force alone starts afresh");
  }
  set_stored(std::move(there));
  const auto kept = sound_records(old, verify_all || machine_restarted_since(old.header));
  resume.resumed = true;
  resume.tiles_kept = before->done();
  tiles_done = before->done();
  // A run without syncs may have written the journal ahead of the data.
  file.sync_data();
  if (resume.tiles_dropped == 0) {
    open_journal(old.end);
  } else {
    // What turned out bad must not be believed by the next run either.
    open_journal(ExportJournal::create(file.journal_path(), old.header, sync));
    for (const JournalRecord& record : kept) journal->add(record, 0);
    journal->flush();
  }
  restore_lse();
}

/// The records that can be believed, marked in `before`; as many of the newest as make a GiB are
/// read back, or all.
std::vector<JournalRecord> Hdf5Export::Impl::sound_records(const JournalContent& old, bool all) {
  TileReader reader(stored, file.data());
  std::vector<JournalRecord> kept;
  for (size_t i = old.records.size(); i-- > 0;) {
    const JournalRecord& record = old.records[i];
    const bool check = all || resume.bytes_checked < kRecheckBytes;
    if (!before->fits(record) || (check && !reader.holds(record, resume.bytes_checked))) {
      resume.tiles_dropped += plan.layout.has_entries() ? record.chunks : record.rows;
      continue;
    }
    before->add(record);
    kept.push_back(record);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

LseTarget Hdf5Export::Impl::lse_target(const ExportManifest::TaskPlace& place) const {
  const GroupPlaces& at = place.group->places;
  const int64_t rows = place.group->grid.rows;
  return {at.lse + place.head * rows * 4, at.lse_checksums + place.head * 4, rows};
}

bool Hdf5Export::Impl::has_lse_row(int64_t task, int64_t row) const {
  if (!plan.layout.has_entries()) return before->has_row(task, row);
  const ChunkGrid& grid = task_places[static_cast<size_t>(task)].group->grid;
  return before->has_chunk(task, row / grid.chunk_rows, 0);
}

/// Gives the LSEs of earlier runs to the writer of their heads' checksums.
void Hdf5Export::Impl::restore_lse() {
  for (size_t t = 0; t < task_places.size(); ++t) {
    const ExportManifest::TaskPlace& place = task_places[t];
    const auto task = static_cast<int64_t>(t);
    const int64_t rows = place.group->has_lse ? place.group->grid.rows : 0;
    for (int64_t row = 0; row < rows;) {
      int64_t end = row;
      while (end < rows && has_lse_row(task, end)) ++end;
      if (end > row) lse_writer.restore(task, lse_target(place), row, end - row);
      row = std::max(end, row + 1);
    }
  }
}

WrittenChunks Hdf5Export::Impl::write_entries(const Tile& tile,
                                              const ExportManifest::TaskPlace& place) {
  const TileRequest& request = plan.layout.request;
  const ChunkGrid& grid = place.group->grid;
  const GroupPlaces& at = place.group->places;
  expect(tile.rows.begin % request.chunk_rows == 0 &&
             tile.rows.end == std::min(tile.rows.begin + grid.chunk_rows, grid.rows),
         "a tile must have whole rows of chunks");
  const int64_t first = tile.cols.begin / request.chunk_cols;
  const auto count = static_cast<int64_t>(tile.chunks.size());
  expect(tile.cols.begin % request.chunk_cols == 0 && count > 0 &&
             first + count <= grid.col_chunks() &&
             (first + count) * request.chunk_cols >= tile.cols.end,
         "a tile must have whole chunks");
  const ChunkTarget target{grid, at.entries, at.entries_checksums};
  const std::vector<const std::byte*> chunks(tile.chunks.begin(), tile.chunks.end());
  return write_chunks(
      file, target,
      {place.head, tile.rows.begin / request.chunk_rows, first, request.chunk_cols, chunks});
}

void Hdf5Export::Impl::check_norms(const Tile& tile, const ExportManifest::TaskPlace& place) {
  expect(static_cast<int64_t>(tile.norms.size()) == tile.rows.size() && tile.rows.begin >= 0 &&
             tile.rows.end <= place.group->grid.rows,
         "a tile must have a norm for each of its rows");
}

/// A tile of an export with entries: its chunks, and its LSEs where it is the first of its rows.
void Hdf5Export::Impl::consume_entries(const Tile& tile, const ExportManifest::TaskPlace& place) {
  const WrittenChunks written = write_entries(tile, place);
  const int64_t row_chunk = tile.rows.begin / plan.layout.request.chunk_rows;
  const int64_t first = tile.cols.begin / plan.layout.request.chunk_cols;
  const auto count = static_cast<int64_t>(tile.chunks.size());
  const bool lse = place.group->has_lse && tile.first_segment;
  std::vector<float> values;
  if (lse) {
    check_norms(tile, place);
    if (has_lse_row(tile.task_index, tile.rows.begin)) {
      for (const RowNorm& norm : tile.norms) values.push_back(static_cast<float>(norm.lse()));
    } else {
      values = lse_writer.write(tile.task_index, lse_target(place), tile.rows.begin, tile.norms);
    }
  }
  const int64_t data = written.bytes + static_cast<int64_t>(values.size()) * 4;
  bytes += data;
  file.keep_partial();
  journal->add({tile.task_index, tile.rows.begin, static_cast<int32_t>(tile.rows.size()),
                static_cast<int32_t>(first), static_cast<int32_t>(count), lse ? kJournalHasLse : 0,
                record_checksum(written.checksums, values)},
               data);
  tiles_done += count - before->count_chunks(tile.task_index, row_chunk, {first, first + count});
}

/// A tile of an export of LSEs alone: those of its rows that are not there yet.
void Hdf5Export::Impl::consume_norms(const Tile& tile, const ExportManifest::TaskPlace& place) {
  check_norms(tile, place);
  for (int64_t row = tile.rows.begin; row < tile.rows.end;) {
    int64_t end = row;
    while (end < tile.rows.end && !before->has_row(tile.task_index, end)) ++end;
    if (end > row) {
      const auto count = static_cast<size_t>(end - row);
      const auto norms = tile.norms.subspan(static_cast<size_t>(row - tile.rows.begin), count);
      const auto values = lse_writer.write(tile.task_index, lse_target(place), row, norms);
      bytes += (end - row) * 4;
      file.keep_partial();
      journal->add({tile.task_index, row, static_cast<int32_t>(end - row), 0, 0, kJournalHasLse,
                    record_checksum({}, values)},
                   (end - row) * 4);
      tiles_done += end - row;
    }
    row = std::max(end, row + 1);
  }
}

Hdf5Export::Hdf5Export(ExportPlan plan, std::filesystem::path out,
                       const ExportWriteOptions& options)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(out), options)) {}

Hdf5Export::~Hdf5Export() {
  try {
    suspend();
  } catch (const std::exception&) {
    // Whoever wants to know calls suspend().
  }
}

std::span<const HeadTask> Hdf5Export::tasks() const { return impl_->plan.tasks; }

TileRequest Hdf5Export::request() const { return impl_->plan.request(); }

const ExportResume& Hdf5Export::resume() const { return impl_->resume; }

const std::vector<std::string>& Hdf5Export::warnings() const { return impl_->file.warnings(); }

std::filesystem::path Hdf5Export::partial_path() const { return impl_->file.part_path(); }

int64_t Hdf5Export::tiles_done() const { return impl_->tiles_done; }

int64_t Hdf5Export::tiles_total() const { return impl_->before ? impl_->before->total() : 0; }

bool Hdf5Export::has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const {
  if (!impl_->resume.resumed) return false;
  const TileRequest& request = impl_->plan.layout.request;
  if (!request.entries) return impl_->before->count_rows(task_index, rows) == rows.size();
  const IndexRange chunks{cols.begin / request.chunk_cols, ceil_div(cols.end, request.chunk_cols)};
  const int64_t row_chunk = rows.begin / request.chunk_rows;
  return impl_->before->count_chunks(task_index, row_chunk, chunks) == chunks.size();
}

void Hdf5Export::begin(std::span<const HeadTask> tasks, int) {
  expect(tasks.data() == impl_->plan.tasks.data() && tasks.size() == impl_->plan.tasks.size(),
         "the stream must be that of tasks()");
  expect(impl_->journal.has_value(), "the export is complete");
}

void Hdf5Export::consume(const Tile& tile) {
  const ExportManifest::TaskPlace& place =
      impl_->task_places.at(static_cast<size_t>(tile.task_index));
  if (impl_->plan.layout.has_entries()) return impl_->consume_entries(tile, place);
  impl_->consume_norms(tile, place);
}

void Hdf5Export::suspend() {
  if (impl_->journal) impl_->journal->flush();
}

void Hdf5Export::end() {
  expect(impl_->tiles_done == impl_->before->total(), "every tile must be consumed once");
  // The mark must never be durable before what it vouches for.
  impl_->journal->flush();
  const std::byte complete{1};
  impl_->file.write_at({&complete, 1}, impl_->stored.complete);
  impl_->journal.reset();
  impl_->file.commit();
}

int64_t Hdf5Export::bytes_written() const { return impl_->bytes; }

}  // namespace attnscope
