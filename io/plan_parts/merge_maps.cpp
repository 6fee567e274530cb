#include "io/plan_parts/merge_maps.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_plan.h"
#include "io/export/format/tile_check.h"
#include "io/export/write/tiled_file.h"
#include "io/files/checksum.h"

namespace attnscope {
namespace {

/// A head of the whole, and where it stands in its part.
struct HeadSource {
  const PartFile* part = nullptr;
  const StoredGroup* group = nullptr;
  int64_t head = 0;  ///< of the part's group
};

/// One a task of the whole, in their order.
std::vector<HeadSource> sources_of(const MergedExport& whole) {
  std::vector<HeadSource> sources;
  for (size_t g = 0; g < whole.pieces.size(); ++g) {
    const auto items = std::ssize(whole.layout.groups[g].batch);
    for (int64_t item = 0; item < items; ++item) {
      for (const GroupPiece& piece : whole.pieces[g]) {
        for (int64_t head = 0; head < piece.heads; ++head) {
          sources.push_back(
              {piece.part, &piece.part->stored().groups[piece.group], item * piece.heads + head});
        }
      }
    }
  }
  return sources;
}

class MapsMerge {
 public:
  MapsMerge(const MergedExport& whole, const std::filesystem::path& out,
            const ExportWriteOptions& options, const MergeControl& control)
      : layout_(whole.layout),
        control_(control),
        sources_(sources_of(whole)),
        total_(maps_bytes(whole)),
        out_(whole.spec, whole.layout, out, options) {}

  MergeResult run() {
    MergeResult result;
    result.complete_already = out_.resume().complete;
    result.warnings = out_.file().warnings();
    if (!result.complete_already) {
      tiles_ = out_.resume().tiles_kept;
      copy_and_tell();
      out_.end(tiles_);
    }
    result.bytes_written = written_;
    result.notes = out_.notes();
    return result;
  }

 private:
  /// Where it fails, what was copied is kept, and people are told.
  void copy_and_tell() {
    try {
      copy_all();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) throw;
      out_.suspend();
      if (tiles_ == 0) throw;
      throw Error(
          error.code(),
          fmt::format("{}; {} of {} tiles are kept in {}, and in {} which they are: "
                      "--resume goes on once this is mended, --force gives them up",
                      error.what(), tiles_, out_.before().total(), out_.file().part_path().string(),
                      out_.file().journal_path().filename().string()),
          error.place());
    }
  }

  void copy_all() {
    for (size_t task = 0; task < sources_.size(); ++task) {
      const int64_t rows = layout_.has_entries() ? sources_[task].group->grid.row_chunks() : 1;
      for (int64_t row = 0; row < rows; ++row) {
        if (control_.stop.stop_requested()) {
          out_.suspend();
          throw Error(ErrorCode::interrupted,
                      fmt::format("interrupted: {} of {} tiles are in {}; --resume goes on", tiles_,
                                  out_.before().total(), out_.file().part_path().string()));
        }
        layout_.has_entries() ? copy_row(static_cast<int64_t>(task), row)
                              : copy_lse(static_cast<int64_t>(task));
      }
    }
  }

  /// A row of chunks with the LSEs of its rows.
  void copy_row(int64_t task, int64_t row) {
    const HeadSource& from = sources_[static_cast<size_t>(task)];
    const StoredGroup& to = *out_.place(task).group;
    const ChunkGrid& grid = from.group->grid;
    const int64_t chunks = grid.col_chunks();
    const int64_t rows = std::min(grid.chunk_rows, grid.rows - row * grid.chunk_rows);
    step(chunks * grid.chunk_bytes() + (to.has_lse ? rows * 4 : 0));
    if (out_.before().count_chunks(task, row, {0, chunks}) == chunks) return;
    const int64_t there = grid.chunk_number(from.head, row, 0);
    const int64_t here = to.grid.chunk_number(out_.place(task).head, row, 0);
    std::vector<uint32_t> sums(static_cast<size_t>(chunks));
    from.part->file().read_at(from.group->places.entries_checksums + there * 4,
                              std::as_writable_bytes(std::span(sums)));
    chunk_.resize(static_cast<size_t>(grid.chunk_bytes()));
    int64_t bytes = 0;
    for (int64_t c = 0; c < chunks; ++c) {
      from.part->file().read_at(from.group->places.entries + (there + c) * grid.chunk_bytes(),
                                chunk_);
      if (checksum(chunk_) != sums[static_cast<size_t>(c)]) refuse(from, row);
      // A chunk that a mask left out is a hole of the part's file, and of the merged one.
      const bool empty =
          std::all_of(chunk_.begin(), chunk_.end(), [](std::byte b) { return b == std::byte{0}; });
      if (empty) continue;
      out_.file().write_at(chunk_, to.places.entries + (here + c) * grid.chunk_bytes());
      bytes += grid.chunk_bytes();
    }
    out_.file().write_at(std::as_bytes(std::span(sums)), to.places.entries_checksums + here * 4);
    std::vector<float> lse;
    if (to.has_lse) {
      lse = copy_lse_rows(task, {row * grid.chunk_rows, row * grid.chunk_rows + rows});
    }
    add({task, row * grid.chunk_rows, static_cast<int32_t>(rows), 0, static_cast<int32_t>(chunks),
         to.has_lse ? kJournalHasLse : 0, record_checksum(sums, lse)},
        bytes + std::ssize(lse) * 4, chunks - out_.before().count_chunks(task, row, {0, chunks}));
  }

  void copy_lse(int64_t task) {
    const int64_t rows = sources_[static_cast<size_t>(task)].group->grid.rows;
    step(rows * 4);
    const int64_t kept = out_.before().count_rows(task, {0, rows});
    if (kept == rows) return;
    const std::vector<float> lse = copy_lse_rows(task, {0, rows});
    add({task, 0, static_cast<int32_t>(rows), 0, 0, kJournalHasLse, record_checksum({}, lse)},
        rows * 4, rows - kept);
  }

  std::vector<float> copy_lse_rows(int64_t task, IndexRange rows) {
    const HeadSource& from = sources_[static_cast<size_t>(task)];
    const StoredGroup& to = *out_.place(task).group;
    const std::vector<float>& all = lse_of(task);
    const std::vector<float> values(all.begin() + rows.begin, all.begin() + rows.end);
    out_.file().write_at(
        std::as_bytes(std::span(values)),
        to.places.lse + (out_.place(task).head * from.group->grid.rows + rows.begin) * 4);
    out_.file().write_at(std::as_bytes(std::span(&lse_sum_, 1)),
                         to.places.lse_checksums + out_.place(task).head * 4);
    return values;
  }

  /// The LSEs of a head, once they are what their checksum says.
  const std::vector<float>& lse_of(int64_t task) {
    if (lse_task_ == task) return lse_;
    const HeadSource& from = sources_[static_cast<size_t>(task)];
    const int64_t rows = from.group->grid.rows;
    lse_.resize(static_cast<size_t>(rows));
    from.part->file().read_at(from.group->places.lse + from.head * rows * 4,
                              std::as_writable_bytes(std::span(lse_)));
    from.part->file().read_at(from.group->places.lse_checksums + from.head * 4,
                              std::as_writable_bytes(std::span(&lse_sum_, 1)));
    if (checksum(std::as_bytes(std::span(lse_))) != lse_sum_) refuse(from, -1);
    lse_task_ = task;
    return lse_;
  }

  [[noreturn]] static void refuse(const HeadSource& from, int64_t row) {
    const auto heads = std::ssize(from.group->heads);
    const std::string what = row < 0 ? "lse"
                                     : fmt::format("{} rows from {}", from.group->entries_name,
                                                   row * from.group->grid.chunk_rows);
    throw file_error(
        from.part->path().string(), "calls/" + from.group->name,
        fmt::format("batch {} head {} {}: is not what was written (its checksum differs)",
                    from.group->batch[static_cast<size_t>(from.head / heads)],
                    from.group->heads[static_cast<size_t>(from.head % heads)], what));
  }

  void step(int64_t bytes) {
    done_ += bytes;
    if (control_.progress) control_.progress(done_, total_);
  }

  void add(const JournalRecord& record, int64_t bytes, int64_t tiles) {
    out_.add(record, bytes);
    written_ += bytes;
    tiles_ += tiles;
  }

  const ExportLayout& layout_;
  const MergeControl& control_;
  const std::vector<HeadSource> sources_;
  const int64_t total_;
  TiledFile out_;
  std::vector<std::byte> chunk_;
  std::vector<float> lse_;
  uint32_t lse_sum_ = 0;
  int64_t lse_task_ = -1;
  int64_t done_ = 0, written_ = 0, tiles_ = 0;
};

}  // namespace

int64_t maps_bytes(const MergedExport& whole) { return least_export_bytes(whole.layout); }

MergeResult merge_maps(const MergedExport& whole, const std::filesystem::path& out,
                       const ExportWriteOptions& options, const MergeControl& control) {
  return MapsMerge(whole, out, options, control).run();
}

}  // namespace attnscope
