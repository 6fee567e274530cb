#include "io/export/format/tile_check.h"

#include "io/files/checksum.h"

namespace attnscope {

uint32_t record_checksum(std::span<const uint32_t> chunks, std::span<const float> lse) {
  std::vector<uint32_t> parts(chunks.begin(), chunks.end());
  parts.push_back(checksum(std::as_bytes(lse)));
  return checksum(std::as_bytes(std::span(parts)));
}

TileReader::TileReader(const ExportManifest& stored, const PosixFile& file)
    : file_(file), tasks_(stored.tasks()) {}

uint32_t TileReader::chunk_checksum(const StoredGroup& group, int64_t head, int64_t row_chunk,
                                    int64_t col_chunk) {
  const ChunkGrid& grid = group.grid;
  const int64_t number = grid.chunk_number(head, row_chunk, col_chunk);
  chunk_.resize(static_cast<size_t>(grid.chunk_bytes()));
  file_.read_at(chunk_, group.places.entries + number * grid.chunk_bytes());
  return checksum(chunk_);
}

std::vector<float> TileReader::lse(const StoredGroup& group, int64_t head, IndexRange rows) const {
  std::vector<float> values(static_cast<size_t>(rows.size()));
  const int64_t first = head * group.grid.rows + rows.begin;
  file_.read_at(std::as_writable_bytes(std::span(values)), group.places.lse + first * 4);
  return values;
}

bool TileReader::holds(const JournalRecord& record, int64_t& bytes) {
  const ExportManifest::TaskPlace& place = tasks_[static_cast<size_t>(record.task)];
  const ChunkGrid& grid = place.group->grid;
  std::vector<uint32_t> sums;
  for (int64_t c = 0; c < record.chunks; ++c) {
    sums.push_back(chunk_checksum(*place.group, place.head, record.row_begin / grid.chunk_rows,
                                  record.first_chunk + c));
    bytes += grid.chunk_bytes();
  }
  std::vector<float> values;
  if ((record.flags & kJournalHasLse) != 0) {
    values = lse(*place.group, place.head, {record.row_begin, record.row_begin + record.rows});
    bytes += record.rows * 4;
  }
  return record_checksum(sums, values) == record.data_checksum;
}

}  // namespace attnscope
