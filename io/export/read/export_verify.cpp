#include "io/export/read/export_verify.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/export/format/tile_check.h"
#include "io/export/read/export_files.h"
#include "io/export/read/lse_check.h"
#include "io/export/read/part_file.h"
#include "io/export/read/part_tiles.h"
#include "io/files/checksum.h"

namespace attnscope {
namespace {

constexpr size_t kMostNamed = 100;

/// Which tiles should be there.
class Expected {
 public:
  /// A file with its mark has all; one with a journal what that says; for others a checksum that is
  /// not 0 must do.
  Expected(const ExportManifest& stored, const std::filesystem::path& path, bool complete)
      : complete_(complete), part_(stored, path, complete) {}
  bool complete() const { return complete_; }
  bool has_journal() const { return part_.has_journal(); }
  const CompletedTiles& tiles() const { return part_.tiles(); }
  const PartTiles& part() const { return part_; }
  bool chunk(int64_t task, int64_t row_chunk, int64_t col_chunk, uint32_t recorded) const {
    if (complete_) return true;
    return has_journal() ? tiles().has_chunk(task, row_chunk, col_chunk) : recorded != 0;
  }

 private:
  bool complete_;
  PartTiles part_;
};

class Verifier {
 public:
  /// `linked`: it is a part that a master links.
  Verifier(std::filesystem::path path, std::stop_token stop,
           std::function<void(int64_t, int64_t)> progress, bool linked = false)
      : path_(std::move(path)),
        stop_(std::move(stop)),
        progress_(std::move(progress)),
        linked_(linked) {}

  VerifyReport run() {
    report_.stored = read_manifest(path_);
    const ExportManifest& stored = report_.stored;
    if (linked_) require_no_links(stored, path_);
    const PosixFile file(path_, PosixFile::Mode::read_only);
    if (!has_sound_structure(stored, file)) {
      add_bad("the structure (attributes, coordinates, or what holds the file together)");
    }
    std::byte mark{};
    file.read_at({&mark, 1}, stored.complete);
    if (mark > std::byte{1}) add_bad("the mark of completeness");
    if (!stored.shards.empty()) return check_shards(mark == std::byte{1});
    if (!stored.parts.empty()) return check_parts(mark == std::byte{1});
    if (!stored.plain_groups.empty()) {
      report_.bytes = stored.file_bytes;
      report_.state = {mark == std::byte{1}, false, 0, 0};
      return std::move(report_);
    }
    const Expected expected(stored, path_, mark == std::byte{1});
    TileReader reader(stored, file);
    int64_t task = 0;
    for (const ExportManifest::TaskPlace& place : stored.tasks()) {
      const StoredGroup& group = *place.group;
      if (!group.entries_name.empty())
        check_entries(group, place.head, task, expected, reader, file);
      if (group.has_lse) check_lse(group, place.head, task, expected, file);
      ++task;
    }
    report_.state = {expected.complete(), expected.has_journal(), report_.tiles_good,
                     expected.tiles().total()};
    return std::move(report_);
  }

 private:
  VerifyReport check_shards(bool complete) {
    const auto total = static_cast<int64_t>(report_.stored.shards.size());
    const std::string renamed = renamed_text(report_.stored);
    if (!renamed.empty()) add_bad(path_.filename().string() + " " + renamed);
    for (const Shard& shard : report_.stored.shards) {
      const std::filesystem::path file =
          path_.parent_path() / report_.stored.shard_folder / shard.file;
      std::error_code error;
      int64_t bytes = 0;
      if (!std::filesystem::exists(file, error)) {
        ++report_.tiles_missing;
      } else if (file_checksum(file, stop_, &bytes) != shard.checksum || bytes != shard.bytes) {
        add_bad(file.string());
      } else {
        ++report_.tiles_good;
      }
      report_.bytes += bytes;
      if (progress_) progress_(++looked_at_, total);
    }
    report_.state = {complete, false, report_.tiles_good, total};
    return std::move(report_);
  }

  /// Parts that a master links, each with all of its tiles.
  VerifyReport check_parts(bool complete) {
    const auto total = static_cast<int64_t>(report_.stored.parts.size());
    for (const LinkedPart& part : report_.stored.parts) {
      const std::filesystem::path file = path_.parent_path() / part.file;
      std::error_code error;
      if (!std::filesystem::exists(file, error)) {
        ++report_.tiles_missing;
      } else {
        const int64_t bad_before = report_.bad;
        check_part(part, file);
        if (report_.bad == bad_before) ++report_.tiles_good;
      }
      if (progress_) progress_(++looked_at_, total);
    }
    report_.state = {complete, false, report_.tiles_good, total};
    return std::move(report_);
  }

  void check_part(const LinkedPart& part, const std::filesystem::path& file) {
    try {
      const InputFile bytes(file);
      const VerifyReport found = Verifier(file, stop_, {}, true).run();
      report_.bytes += found.bytes;
      const bool same =
          bytes.size() == part.bytes && part_digest(found.stored, bytes) == part.digest;
      if (!same) add_bad(part.file + ": is another file than the one that was linked");
      for (const std::string& place : found.bad_places) add_bad(part.file + ": " + place);
      if (found.tiles_missing > 0) add_bad(part.file + ": is not complete");
    } catch (const Error& failure) {
      if (failure.code() != ErrorCode::file) throw;
      add_bad(failure.what());
    }
  }

  void add_bad(std::string place) {
    ++report_.bad;
    if (report_.bad_places.size() < kMostNamed) report_.bad_places.push_back(std::move(place));
  }

  void step(const Expected& expected, int64_t tiles) {
    if (stop_.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    looked_at_ += tiles;
    if (progress_) progress_(looked_at_, expected.tiles().total());
  }

  static std::string head_name(const StoredGroup& group, int64_t head) {
    const auto heads = static_cast<int64_t>(group.heads.size());
    return fmt::format("batch {} head {}", group.batch[static_cast<size_t>(head / heads)],
                       group.heads[static_cast<size_t>(head % heads)]);
  }

  void check_entries(const StoredGroup& group, int64_t head, int64_t task, const Expected& expected,
                     TileReader& reader, const PosixFile& file) {
    const ChunkGrid& grid = group.grid;
    std::vector<uint32_t> recorded(static_cast<size_t>(grid.col_chunks()));
    for (int64_t row = 0; row < grid.row_chunks(); ++row) {
      const int64_t sums = group.places.entries_checksums + grid.chunk_number(head, row, 0) * 4;
      file.read_at(std::as_writable_bytes(std::span(recorded)), sums);
      expected.part().put_in(recorded, sums);
      for (int64_t col = 0; col < grid.col_chunks(); ++col) {
        const uint32_t sum = recorded[static_cast<size_t>(col)];
        if (!expected.chunk(task, row, col, sum)) {
          ++report_.tiles_missing;
          continue;
        }
        report_.bytes += grid.chunk_bytes();
        if (reader.chunk_checksum(group, head, row, col) == sum) {
          ++report_.tiles_good;
        } else {
          add_bad(fmt::format("{}/{} {} rows {} cols {}", group.name, group.entries_name,
                              head_name(group, head), range_text(row, grid.chunk_rows, grid.rows),
                              range_text(col, grid.chunk_cols, grid.cols)));
        }
      }
      step(expected, grid.col_chunks());
    }
  }

  static std::string range_text(int64_t chunk, int64_t extent, int64_t limit) {
    return fmt::format("{}:{}", chunk * extent, std::min((chunk + 1) * extent, limit));
  }

  /// A head's checksum is over all its rows, so it can be checked once they are all there.
  void check_lse(const StoredGroup& group, int64_t head, int64_t task, const Expected& expected,
                 const PosixFile& file) {
    const ChunkGrid& grid = group.grid;
    const bool alone = group.entries_name.empty();
    uint32_t recorded = 0;
    file.read_at(std::as_writable_bytes(std::span(&recorded, 1)),
                 group.places.lse_checksums + head * 4);
    int64_t there = grid.rows;
    if (!expected.complete()) {
      there = !expected.has_journal() ? (recorded != 0 ? grid.rows : 0)
              : alone                 ? expected.tiles().count_rows(task, {0, grid.rows})
                                      : rows_with_lse(grid, task, expected);
    }
    if (alone) step(expected, grid.rows);
    // Where several processes write the rows of a head, its checksum comes last of all.
    const bool unchecked = !expected.complete() && recorded == 0;
    if (there < grid.rows || unchecked) {
      if (alone) report_.tiles_missing += grid.rows - there;
      if (alone) report_.tiles_good += there;
      return;
    }
    report_.bytes += grid.rows * 4;
    const auto read = [&](std::span<std::byte> bytes, int64_t place) {
      file.read_at(bytes, place);
    };
    if (lse_holds(group, head, read)) {
      if (alone) report_.tiles_good += grid.rows;
    } else {
      add_bad(fmt::format("{}/lse {}", group.name, head_name(group, head)));
    }
  }

  static int64_t rows_with_lse(const ChunkGrid& grid, int64_t task, const Expected& expected) {
    int64_t rows = 0;
    for (int64_t row = 0; row < grid.row_chunks(); ++row) {
      if (!expected.tiles().has_chunk(task, row, 0)) continue;
      rows += std::min(grid.chunk_rows, grid.rows - row * grid.chunk_rows);
    }
    return rows;
  }

  const std::filesystem::path path_;
  std::stop_token stop_;
  const std::function<void(int64_t, int64_t)> progress_;
  const bool linked_;
  VerifyReport report_;
  int64_t looked_at_ = 0;
};

}  // namespace

ExportState export_state(const ExportManifest& stored, const std::filesystem::path& path) {
  const PosixFile file(path, PosixFile::Mode::read_only);
  const bool complete = is_marked_complete(stored, file);
  if (!stored.plain_groups.empty()) return {complete, false, 0, 0};
  const Expected expected(stored, path, complete);
  const int64_t total = expected.tiles().total();
  return {expected.complete(), expected.has_journal(),
          expected.complete() ? total : expected.tiles().done(), total};
}

VerifyReport verify_export(const std::filesystem::path& path, std::stop_token stop,
                           const std::function<void(int64_t, int64_t)>& progress) {
  return Verifier(path, std::move(stop), progress).run();
}

}  // namespace attnscope
