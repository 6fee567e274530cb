#include "io/export/read/part_tiles.h"

#include <algorithm>
#include <cstring>

#include "io/export/format/sums_log.h"
#include "io/files/rank_files.h"

namespace attnscope {
namespace {

std::filesystem::path out_of(const std::filesystem::path& path) {
  std::filesystem::path out = path;
  return out.extension() == ".part" ? out.replace_extension() : out;
}

/// True where a chunk's checksum stands at `place`: LSEs are checked when all of a head are there.
bool is_checksum(const ExportManifest& stored, int64_t place) {
  return std::any_of(stored.groups.begin(), stored.groups.end(), [&](const StoredGroup& group) {
    const int64_t first = group.places.entries_checksums;
    return first >= 0 && place >= first && place < first + group.grid.chunks() * 4;
  });
}

}  // namespace

PartTiles::PartTiles(const ExportManifest& stored, const std::filesystem::path& path, bool complete)
    : tiles_(stored) {
  if (complete) return;
  const std::filesystem::path out = out_of(path);
  std::filesystem::path journal = out;
  const auto first = read_journal(journal += ".journal");
  has_journal_ = first.has_value();
  if (!first) return;
  add(first->records);
  for (const JournalRecord& record : first->records) {
    if (!tiles_.fits(record) || (record.flags & kJournalHasLse) == 0) continue;
    lse_records_.insert_or_assign({record.task, record.row_begin}, record);
  }
  for (const int rank : ranks_beside(out)) {
    const auto other = read_journal(rank_journal_path(out, rank));
    // It ended before it had one.
    if (!other) continue;
    add(other->records);
    const auto keep = [&](std::span<const std::byte> bytes, int64_t place) {
      if (!is_checksum(stored, place)) return;
      for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
        std::memcpy(&left_[place + static_cast<int64_t>(at)], bytes.data() + at, 4);
      }
    };
    read_sums(rank_sums_path(out, rank), stored.file_bytes, keep);
  }
}

void PartTiles::add(const std::vector<JournalRecord>& records) {
  for (const JournalRecord& record : records) {
    if (tiles_.fits(record)) tiles_.add(record);
  }
}

const JournalRecord* PartTiles::lse_record(int64_t task, int64_t row) const {
  auto found = lse_records_.upper_bound({task, row});
  if (found == lse_records_.begin()) return nullptr;
  const JournalRecord& record = (--found)->second;
  return record.task == task && row < record.row_begin + record.rows ? &record : nullptr;
}

void PartTiles::put_in(std::span<uint32_t> sums, int64_t place) const {
  const int64_t end = place + std::ssize(sums) * 4;
  for (auto at = left_.lower_bound(place); at != left_.end() && at->first < end; ++at) {
    sums[static_cast<size_t>((at->first - place) / 4)] = at->second;
  }
}

}  // namespace attnscope
