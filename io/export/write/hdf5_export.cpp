#include "io/export/write/hdf5_export.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/stream/tile_backend.h"
#include "io/export/format/tile_check.h"
#include "io/export/write/chunk_writer.h"
#include "io/export/write/sharded_export.h"
#include "io/export/write/shared_export.h"
#include "io/export/write/tiled_file.h"
#include "io/files/checksum.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

// Tiles, LSEs and checksums go from memory to the file as they are.
static_assert(std::endian::native == std::endian::little);

/// Where one head's LSEs and their checksum go.
struct LseTarget {
  int64_t base = 0;  ///< of the head's first row
  int64_t checksum_offset = 0;
  int64_t rows = 0;
};

/// Writes rows of LSEs as their panels come, in any order, and a head's checksum once its last row
/// is there. Holds 4 bytes a row of the heads that are not complete. With `apart`, other processes
/// write rows of the same heads: their checksums are found in the end (write_checksum).
/// Thread-safe.
class LseWriter {
 public:
  LseWriter(const OutputFile& file, WriteSmall small, bool apart)
      : file_(file), small_(std::move(small)), apart_(apart) {}

  /// Rows [first_row, first_row + norms.size()) of head `head` (any number that tells heads apart).
  /// Each row comes once. Returns the values as they were written. Throws what
  /// OutputFile::write_at throws.
  std::vector<float> write(int64_t head, const LseTarget& target, int64_t first_row,
                           std::span<const RowNorm> norms);
  /// Takes rows that an earlier run wrote from the file.
  void restore(int64_t head, const LseTarget& target, int64_t first_row, int64_t rows);
  /// The checksum of a head whose rows are all in the file, read back from there.
  void write_checksum(const LseTarget& target);

 private:
  /// Takes the values into account; writes the checksum after the head's last one.
  void add(int64_t head, const LseTarget& target, int64_t first_row, std::span<const float> values);
  void put_checksum(const LseTarget& target, std::span<const float> values);
  struct Pending {
    std::vector<float> values;
    int64_t missing = 0;
  };
  const OutputFile& file_;
  const WriteSmall small_;
  const bool apart_;
  std::mutex mutex_;
  std::map<int64_t, Pending> pending_;
};

constexpr auto kBytes = static_cast<int64_t>(sizeof(float));

std::vector<float> LseWriter::write(int64_t head, const LseTarget& target, int64_t first_row,
                                    std::span<const RowNorm> norms) {
  std::vector<float> values(norms.size());
  for (size_t i = 0; i < norms.size(); ++i) values[i] = static_cast<float>(norms[i].lse());
  small_(std::as_bytes(std::span(values)), target.base + first_row * kBytes);
  if (!apart_) add(head, target, first_row, values);
  return values;
}

void LseWriter::restore(int64_t head, const LseTarget& target, int64_t first_row, int64_t rows) {
  if (apart_) return;
  std::vector<float> values(static_cast<size_t>(rows));
  file_.read_at(std::as_writable_bytes(std::span(values)), target.base + first_row * kBytes);
  add(head, target, first_row, values);
}

void LseWriter::add(int64_t head, const LseTarget& target, int64_t first_row,
                    std::span<const float> values) {
  std::vector<float> complete;
  {
    const std::lock_guard lock(mutex_);
    auto at = pending_.find(head);
    if (at == pending_.end()) {
      // Made whole first: where memory runs out nobody finds half of it.
      Pending fresh{std::vector<float>(static_cast<size_t>(target.rows)), target.rows};
      at = pending_.emplace(head, std::move(fresh)).first;
    }
    Pending& pending = at->second;
    std::copy(values.begin(), values.end(), pending.values.begin() + first_row);
    pending.missing -= static_cast<int64_t>(values.size());
    if (pending.missing > 0) return;
    complete = std::move(pending.values);
    pending_.erase(at);
  }
  put_checksum(target, complete);
}

void LseWriter::write_checksum(const LseTarget& target) {
  std::vector<float> values(static_cast<size_t>(target.rows));
  file_.read_at(std::as_writable_bytes(std::span(values)), target.base);
  put_checksum(target, values);
}

void LseWriter::put_checksum(const LseTarget& target, std::span<const float> values) {
  const uint32_t sum = checksum(std::as_bytes(values));
  file_.write_at(std::as_bytes(std::span(&sum, 1)), target.checksum_offset);
}

/// The processes that write to the file: this one alone, or others as well.
enum class Writers : uint8_t { one, several };

class Hdf5Export final : public SharedExport {
 public:
  Hdf5Export(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options,
             Writers writers);
  Hdf5Export(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options,
             const ExportInvitation& invitation, int rank);

  const ExportResume& resume() const override { return out_.resume(); }
  const std::vector<std::string>& warnings() const override { return out_.file().warnings(); }
  const std::vector<std::string>& notes() const override { return out_.notes(); }
  std::span<const HeadTask> tasks() const override { return plan_.tasks; }
  bool has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const override;
  void suspend() override { out_.suspend(); }
  std::filesystem::path partial_path() const override { return out_.file().part_path(); }
  int64_t tiles_done() const override { return tiles_done_; }
  int64_t tiles_kept() const override { return out_.tiles_kept(); }
  int64_t tiles_total() const override { return resume().complete ? 0 : out_.before().total(); }
  int64_t bytes_written() const override { return bytes_; }

  TileRequest request() const override { return plan_.request(); }
  void begin(std::span<const HeadTask> tasks, int workers) override;
  void consume(const Tile& tile) override;
  void end() override { out_.end(tiles_done_); }

  ExportInvitation invite() override { return out_.invite(); }
  int64_t hand_in() override { return out_.hand_in(); }
  void finish(const PromisedSums& left, int64_t tiles) override;

 private:
  void restore_lse();
  static LseTarget lse_target(const ExportManifest::TaskPlace& place);
  WrittenChunks write_entries(const Tile& tile, const ExportManifest::TaskPlace& place);
  void consume_entries(const Tile& tile, const ExportManifest::TaskPlace& place);
  void consume_norms(const Tile& tile, const ExportManifest::TaskPlace& place);

  const ExportPlan plan_;
  TiledFile out_;
  const WriteSmall small_ = [this](std::span<const std::byte> bytes, int64_t place) {
    out_.write_small(bytes, place);
  };
  LseWriter lse_writer_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> tiles_done_{0};
};

Hdf5Export::Hdf5Export(ExportPlan plan, std::filesystem::path out,
                       const ExportWriteOptions& options, Writers writers)
    : plan_(std::move(plan)),
      out_(plan_.spec, plan_.layout, std::move(out), options),
      lse_writer_(out_.file(), small_, writers == Writers::several) {
  if (resume().complete) return;
  tiles_done_ = resume().tiles_kept;
  if (resume().resumed) restore_lse();
  if (threads_at_disk(plan_, options) > 0) out_.file().bypass_page_cache();
}

Hdf5Export::Hdf5Export(ExportPlan plan, std::filesystem::path out,
                       const ExportWriteOptions& options, const ExportInvitation& invitation,
                       int rank)
    : plan_(std::move(plan)),
      out_(plan_.spec, plan_.layout, std::move(out), options, invitation, rank),
      lse_writer_(out_.file(), small_, true) {
  if (!resume().complete && threads_at_disk(plan_, options) > 0) out_.file().bypass_page_cache();
}

LseTarget Hdf5Export::lse_target(const ExportManifest::TaskPlace& place) {
  const GroupPlaces& at = place.group->places;
  const int64_t rows = place.group->grid.rows;
  return {at.lse + place.head * rows * 4, at.lse_checksums + place.head * 4, rows};
}

/// Gives the LSEs of earlier runs to the writer of their heads' checksums.
void Hdf5Export::restore_lse() {
  int64_t task = 0;
  for (const ExportManifest::TaskPlace& place : out_.places()) {
    const int64_t rows = place.group->has_lse ? place.group->grid.rows : 0;
    for (int64_t row = 0; row < rows;) {
      int64_t end = row;
      while (end < rows && out_.has_lse_row(task, end)) ++end;
      if (end > row) lse_writer_.restore(task, lse_target(place), row, end - row);
      row = std::max(end, row + 1);
    }
    ++task;
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
      out_.file(), target,
      {place.head, tile.rows.begin / request.chunk_rows, first, request.chunk_cols, chunks},
      small_);
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
    if (out_.has_lse_row(tile.task_index, tile.rows.begin)) {
      for (const RowNorm& norm : tile.norms) values.push_back(static_cast<float>(norm.lse()));
    } else {
      values = lse_writer_.write(tile.task_index, lse_target(place), tile.rows.begin, tile.norms);
    }
  }
  const int64_t data = written.bytes + static_cast<int64_t>(values.size()) * 4;
  bytes_ += data;
  const int64_t tiles =
      count - out_.before().count_chunks(tile.task_index, row_chunk, {first, first + count});
  out_.add({tile.task_index, tile.rows.begin, static_cast<int32_t>(tile.rows.size()),
            static_cast<int32_t>(first), static_cast<int32_t>(count), lse ? kJournalHasLse : 0,
            record_checksum(written.checksums, values)},
           data, tiles);
  tiles_done_ += tiles;
}

/// A tile of an export of LSEs alone: those of its rows that are not there yet.
void Hdf5Export::consume_norms(const Tile& tile, const ExportManifest::TaskPlace& place) {
  assert(std::ssize(tile.norms) == tile.rows.size() && "each row of a tile has a norm");
  for (int64_t row = tile.rows.begin; row < tile.rows.end;) {
    int64_t end = row;
    while (end < tile.rows.end && !out_.before().has_row(tile.task_index, end)) ++end;
    if (end > row) {
      const auto count = static_cast<size_t>(end - row);
      const auto norms = tile.norms.subspan(static_cast<size_t>(row - tile.rows.begin), count);
      const auto values = lse_writer_.write(tile.task_index, lse_target(place), row, norms);
      bytes_ += (end - row) * 4;
      out_.add({tile.task_index, row, static_cast<int32_t>(end - row), 0, 0, kJournalHasLse,
                record_checksum({}, values)},
               (end - row) * 4, end - row);
      tiles_done_ += end - row;
    }
    row = std::max(end, row + 1);
  }
}

bool Hdf5Export::has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const {
  if (!resume().resumed) return false;
  const TileRequest& request = plan_.layout.request;
  if (!request.entries) return out_.before().count_rows(task_index, rows) == rows.size();
  const IndexRange chunks{cols.begin / request.chunk_cols, ceil_div(cols.end, request.chunk_cols)};
  const int64_t row_chunk = rows.begin / request.chunk_rows;
  return out_.before().count_chunks(task_index, row_chunk, chunks) == chunks.size();
}

void Hdf5Export::begin([[maybe_unused]] std::span<const HeadTask> tasks, int) {
  assert(tasks.data() == plan_.tasks.data() && tasks.size() == plan_.tasks.size());
  assert(!resume().complete && "the export is complete");
}

void Hdf5Export::finish(const PromisedSums& left, int64_t tiles) {
  out_.gather(left);
  for (const ExportManifest::TaskPlace& place : out_.places()) {
    if (place.group->has_lse) lse_writer_.write_checksum(lse_target(place));
  }
  out_.end(tiles);
}

void Hdf5Export::consume(const Tile& tile) {
  const ExportManifest::TaskPlace& place = out_.place(tile.task_index);
  if (plan_.layout.has_entries()) return consume_entries(tile, place);
  consume_norms(tile, place);
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
  return std::make_unique<Hdf5Export>(std::move(plan), std::move(out), options, Writers::one);
}

std::unique_ptr<SharedExport> make_shared_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options) {
  if (plan.spec.is_sharded()) return make_shared_shards(std::move(plan), std::move(out), options);
  return std::make_unique<Hdf5Export>(std::move(plan), std::move(out), options, Writers::several);
}

std::unique_ptr<SharedExport> join_shared_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options,
                                                 const ExportInvitation& invitation, int rank) {
  if (plan.spec.is_sharded()) {
    return join_shared_shards(std::move(plan), std::move(out), options, invitation, rank);
  }
  return std::make_unique<Hdf5Export>(std::move(plan), std::move(out), options, invitation, rank);
}

}  // namespace attnscope
