#include "io/export/read/stored_maps.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/problem/head_name.h"
#include "io/export/format/export_marks.h"
#include "io/export/format/tile_check.h"
#include "io/export/read/export_verify.h"
#include "io/export/read/lse_check.h"
#include "io/export/read/part_file.h"
#include "io/files/checksum.h"

namespace attnscope {
namespace {

ExportManifest read_maps(const std::filesystem::path& path) {
  ExportManifest stored = read_manifest(path);
  if ((!stored.shards.empty() || !stored.parts.empty()) &&
      (stored.product == "weights" || stored.product == "rows" || stored.product == "logits")) {
    return stored;
  }
  const bool maps = !stored.groups.empty() &&
                    std::all_of(stored.groups.begin(), stored.groups.end(), [](const auto& group) {
                      return group.entries_name == "weights" || group.entries_name == "logits";
                    });
  if (!maps) {
    throw usage_error(path.string() + ": is an export of " + stored.product +
                      ", which has no maps (expected weights, rows or logits)");
  }
  return stored;
}

/// The number that each code of one byte or two stands for.
template <size_t kCodes>
using CodeTable = std::array<float, kCodes>;

CodeTable<65536> half_table(float scale) {
  CodeTable<65536> values{};
  for (size_t bits = 0; bits < values.size(); ++bits) {
    values[bits] = to_float(f16{static_cast<uint16_t>(bits)}) / scale;
  }
  return values;
}

template <typename Code, size_t kCodes>
void look_up(const CodeTable<kCodes>& table, const std::byte* stored, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    Code code = 0;
    std::memcpy(&code, stored + i * static_cast<int64_t>(sizeof code), sizeof code);
    out[i] = table[code];
  }
}

void decode(Encoding encoding, const std::byte* stored, int64_t count, float* out) {
  static const CodeTable<256> kWeightOfCode = [] {
    CodeTable<256> weights{};
    for (size_t code = 0; code < weights.size(); ++code) {
      weights[code] = static_cast<float>(decode_u8_log2(static_cast<uint8_t>(code)));
    }
    return weights;
  }();
  // 256 KiB each: three times as fast as arithmetic.
  static const CodeTable<65536> kHalf = half_table(1), kScaledHalf = half_table(kF16Scale);
  switch (encoding) {
    case Encoding::u8_log2:
      return look_up<uint8_t>(kWeightOfCode, stored, count, out);
    case Encoding::f16:
      return look_up<uint16_t>(kHalf, stored, count, out);
    case Encoding::f16_scaled:
      return look_up<uint16_t>(kScaledHalf, stored, count, out);
    case Encoding::f32:
      break;
  }
  to_floats(DType::f32, stored, count, out);
}

/// Calls take(row chunk, column chunk, rows, columns), positions among those that were exported,
/// for the chunks under queries × keys.
template <typename Take>
void for_chunks(const StoredHead& head, IndexRange queries, IndexRange keys, Take take) {
  const ChunkGrid& grid = head.group->grid;
  const std::vector<int64_t>& held = head.facts->queries;
  const auto position = [&](int64_t query) {
    return std::lower_bound(held.begin(), held.end(), query) - held.begin();
  };
  const IndexRange rows{position(queries.begin), position(queries.end)};
  const IndexRange there = intersect(keys, head.facts->keys);
  if (rows.empty() || there.empty()) return;
  const IndexRange cols{there.begin - head.facts->keys.begin, there.end - head.facts->keys.begin};
  const auto within = [](IndexRange range, int64_t chunk, int64_t size) {
    return intersect(range, {chunk * size, (chunk + 1) * size});
  };
  for (int64_t r = rows.begin / grid.chunk_rows; r * grid.chunk_rows < rows.end; ++r) {
    for (int64_t c = cols.begin / grid.chunk_cols; c * grid.chunk_cols < cols.end; ++c) {
      take(r, c, within(rows, r, grid.chunk_rows), within(cols, c, grid.chunk_cols));
    }
  }
}

/// Takes parts of a map into its blocks. Blocks that a missing part touches are missing.
class BlockPool {
 public:
  BlockPool(StoredPooledMap& result, IndexRange rows, IndexRange cols)
      : result_(result), rows_(rows), cols_(cols), block_(result.map.block_rows) {
    const auto cells = static_cast<size_t>(result.map.rows * result.map.cols);
    result.map.max.assign(cells, -std::numeric_limits<float>::infinity());
    result.missing.assign(cells, 0);
    sums_.assign(cells, 0.0);
  }

  void add(const ChunkPart& part, std::span<const int64_t> queries) {
    for (int64_t r = part.rows.begin; r < part.rows.end; ++r) {
      const int64_t row = queries[static_cast<size_t>(r)] - rows_.begin;
      for (int64_t c = part.keys.begin; c < part.keys.end;) {
        const int64_t block = (c - cols_.begin) / block_;
        const int64_t end = std::min(part.keys.end, cols_.begin + (block + 1) * block_);
        const auto at = static_cast<size_t>(row / block_ * result_.map.cols + block);
        if (part.values == nullptr) {
          result_.missing[at] = 1;
        } else {
          add_run(part.values + (r - part.rows.begin) * part.stride + (c - part.keys.begin),
                  end - c, at);
        }
        c = end;
      }
    }
  }

  void finish() {
    PooledMap& map = result_.map;
    for (int64_t r = 0; r < map.rows; ++r) {
      for (int64_t c = 0; c < map.cols; ++c) {
        const auto at = static_cast<size_t>(r * map.cols + c);
        const int64_t entries = std::min(block_, rows_.size() - r * block_) *
                                std::min(block_, cols_.size() - c * block_);
        map.mean.push_back(static_cast<float>(sums_[at] / static_cast<double>(entries)));
        if (result_.missing[at] == 0) continue;
        ++result_.missing_cells;
        map.max[at] = map.mean[at] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }

 private:
  void add_run(const float* values, int64_t count, size_t at) {
    float largest = result_.map.max[at];
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      largest = std::max(largest, values[i]);
      sum += static_cast<double>(values[i]);
    }
    result_.map.max[at] = largest;
    sums_[at] += sum;
  }

  StoredPooledMap& result_;
  const IndexRange rows_, cols_;
  const int64_t block_;
  std::vector<double> sums_;
};

}  // namespace

StoredMaps::StoredMaps(const std::filesystem::path& path)
    : path_(path),
      stored_(read_maps(path)),
      groups_(stored_.groups),
      file_(path, PosixFile::Mode::read_only) {
  if (!stored_.parts.empty()) {
    open_parts();
  } else if (stored_.shards.empty()) {
    facts_ = read_stored_facts(path, groups_);
  } else {
    open_shards();
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const StoredGroup& group = groups_[g];
    encoding_of(group);
    const auto heads = static_cast<int64_t>(group.heads.size());
    for (int64_t place = 0; place < group.grid.heads; ++place) {
      heads_.push_back({&group, &facts_[g], place, static_cast<int64_t>(heads_.size()),
                        group.batch[static_cast<size_t>(place / heads)],
                        group.heads[static_cast<size_t>(place % heads)]});
    }
  }
  require_sound_structure(stored_, file_);
  const ExportState state = export_state(stored_, path);
  complete_ = state.complete;
  has_journal_ = state.has_journal;
  tiles_.emplace(stored_, path, complete_);
}

std::string StoredMaps::head_text(const StoredHead& head) const {
  const StoredFacts& facts = *head.facts;
  return head_words(
      {facts.step, facts.layer, facts.branch, facts.kind, head.batch, head.head, facts.place});
}

/// "weights of step 10 layer 12 cond joint batch 0 head 3, rows 128 to 255, columns 0 to 511": of a
/// chunk, by the capture's indices.
std::string StoredMaps::place_text(const StoredHead& head, int64_t row_chunk,
                                   int64_t col_chunk) const {
  const ChunkGrid& grid = head.group->grid;
  const StoredFacts& facts = *head.facts;
  const int64_t row = row_chunk * grid.chunk_rows, col = col_chunk * grid.chunk_cols;
  const int64_t last_row = std::min(row + grid.chunk_rows, grid.rows) - 1;
  return fmt::format("{} of {}, rows {} to {}, columns {} to {}", head.group->entries_name,
                     head_text(head), facts.queries[static_cast<size_t>(row)],
                     facts.queries[static_cast<size_t>(last_row)], facts.keys.begin + col,
                     facts.keys.begin + std::min(col + grid.chunk_cols, grid.cols) - 1);
}

/// Links of the master are not followed: the shards' names are known.
void StoredMaps::open_shards() {
  for (const Shard& shard : stored_.shards) {
    const std::filesystem::path file = path_.parent_path() / stored_.shard_folder / shard.file;
    shards_.emplace_back(file, shard.name);
    groups_.push_back(shards_.back().group());
    facts_.push_back(read_stored_facts(file, {groups_.back()}).front());
  }
}

/// Parts stand beside the master, and must be the files that it was made of.
void StoredMaps::open_parts() {
  std::map<std::string, size_t> order;
  for (const std::string& group : stored_.plain_groups) order.emplace(group, order.size());
  for (const LinkedPart& part : stored_.parts) {
    const std::filesystem::path file = path_.parent_path() / part.file;
    const InputFile bytes(file);
    const ExportManifest there = read_manifest(file);
    require_no_links(there, file);
    if (bytes.size() != part.bytes || part_digest(there, bytes) != part.digest) {
      throw file_error(file.string(), "",
                       "is another file than the one that " + path_.string() + " links");
    }
    // Of a part without heads there is nothing to read.
    if (there.groups.empty()) continue;
    parts_.push_back(std::make_unique<const StoredMaps>(file));
    for (const StoredHead& head : parts_.back()->heads()) {
      heads_.push_back(head);
      heads_.back().part = parts_.back().get();
    }
  }
  std::stable_sort(heads_.begin(), heads_.end(), [&](const StoredHead& a, const StoredHead& b) {
    return std::tuple(order[a.group->name], a.batch, a.head) <
           std::tuple(order[b.group->name], b.batch, b.head);
  });
}

int64_t StoredMaps::buffer_bytes(const StoredHead& head) const {
  if (head.part != nullptr) return head.part->buffer_bytes(head.in_part());
  const int64_t chunk = head.group->grid.chunk_bytes();
  if (shards_.empty()) return chunk;
  return std::max(ChunkCache::kMostBytes, chunk) + chunk +
         shards_[group_of(head)].unpacking_bytes();
}

Encoding StoredMaps::encoding_of(const StoredGroup& group) const {
  switch (group.grid.element_bytes) {
    case 4:
      return Encoding::f32;
    case 2:
      return is_logits() ? Encoding::f16 : Encoding::f16_scaled;
    case 1:
      if (!is_logits()) return Encoding::u8_log2;
      break;
    default:
      break;
  }
  throw file_error(path_.string(), group.name, "its entries have an unknown type");
}

std::string_view StoredMaps::dtype_name(const StoredHead& head) const {
  const int64_t bytes = head.group->grid.element_bytes;
  return bytes == 4 ? "f32" : bytes == 2 ? "f16" : "u8";
}

bool StoredMaps::is_there(const StoredHead& head, int64_t row_chunk, int64_t col_chunk,
                          uint32_t recorded) const {
  if (complete_) return true;
  return has_journal_ ? tiles_->tiles().has_chunk(head.task, row_chunk, col_chunk) : recorded != 0;
}

uint32_t StoredMaps::recorded_checksum(const StoredHead& head, int64_t number) const {
  uint32_t recorded = 0;
  const int64_t place = head.group->places.entries_checksums + number * 4;
  file_.read_at(std::as_writable_bytes(std::span(&recorded, 1)), place);
  tiles_->put_in(std::span(&recorded, 1), place);
  return recorded;
}

bool StoredMaps::has_chunk(const StoredHead& head, int64_t row_chunk, int64_t col_chunk) const {
  if (head.part != nullptr) return head.part->has_chunk(head.in_part(), row_chunk, col_chunk);
  if (complete_) return true;
  const int64_t number = head.group->grid.chunk_number(head.place, row_chunk, col_chunk);
  return is_there(head, row_chunk, col_chunk, recorded_checksum(head, number));
}

std::optional<std::vector<std::byte>> StoredMaps::plain_chunk(const StoredHead& head,
                                                              int64_t row_chunk,
                                                              int64_t col_chunk) const {
  const ChunkGrid& grid = head.group->grid;
  const int64_t number = grid.chunk_number(head.place, row_chunk, col_chunk);
  const uint32_t recorded = recorded_checksum(head, number);
  if (!is_there(head, row_chunk, col_chunk, recorded)) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<size_t>(grid.chunk_bytes()));
  file_.read_at(bytes, head.group->places.entries + number * grid.chunk_bytes());
  if (checksum(bytes) != recorded) {
    throw file_error(path_.string(), place_text(head, row_chunk, col_chunk),
                     "is not what was written (attnscope verify tells all)");
  }
  return bytes;
}

std::optional<std::vector<float>> StoredMaps::chunk(const StoredHead& head, int64_t row_chunk,
                                                    int64_t col_chunk) const {
  if (head.part != nullptr) return head.part->chunk(head.in_part(), row_chunk, col_chunk);
  const ChunkGrid& grid = head.group->grid;
  std::vector<float> values(static_cast<size_t>(grid.chunk_rows * grid.chunk_cols));
  const auto decode_to_values = [&](const std::vector<std::byte>& bytes) {
    decode(encoding_of(*head.group), bytes.data(), static_cast<int64_t>(values.size()),
           values.data());
  };
  if (shards_.empty()) {
    const auto bytes = plain_chunk(head, row_chunk, col_chunk);
    if (!bytes) return std::nullopt;
    decode_to_values(*bytes);
  } else {
    const StoredShard& shard = shards_[group_of(head)];
    decode_to_values(*shard.chunk(unpacked_, head.place, row_chunk, col_chunk));
  }
  return values;
}

void StoredMaps::read(const StoredHead& head, IndexRange queries, IndexRange keys,
                      const TakePart& take) const {
  const ChunkGrid& grid = head.group->grid;
  const int64_t origin = head.facts->keys.begin;
  for_chunks(head, queries, keys, [&](int64_t r, int64_t c, IndexRange rows, IndexRange cols) {
    const auto values = chunk(head, r, c);
    const int64_t first =
        (rows.begin - r * grid.chunk_rows) * grid.chunk_cols + cols.begin - c * grid.chunk_cols;
    take({rows,
          {origin + cols.begin, origin + cols.end},
          values ? values->data() + first : nullptr,
          grid.chunk_cols});
  });
}

int64_t StoredMaps::reading_bytes(const StoredHead& head) const {
  const ChunkGrid& grid = head.group->grid;
  return buffer_bytes(head) +
         grid.chunk_rows * grid.chunk_cols * static_cast<int64_t>(sizeof(float));
}

bool StoredMaps::holds(const StoredHead& head, IndexRange queries, IndexRange keys) const {
  bool any = false;
  for_chunks(head, queries, keys, [&](int64_t r, int64_t c, IndexRange, IndexRange) {
    any = any || has_chunk(head, r, c);
  });
  return any;
}

bool StoredMaps::read_rows(const StoredHead& head, std::span<const int64_t> queries,
                           IndexRange keys, std::span<float> out) const {
  std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  const std::span<const int64_t> held = head.facts->queries;
  const auto tall = static_cast<size_t>(head.group->grid.chunk_rows);
  int64_t copied = 0;
  for (size_t first = 0, end = 0; first < queries.size(); first = end) {
    // Rows of one row of chunks are read together.
    const auto row = static_cast<size_t>(
        std::lower_bound(held.begin(), held.end(), queries[first]) - held.begin());
    if (row == held.size()) break;
    const int64_t last = held[std::min(held.size(), (row / tall + 1) * tall) - 1];
    while (end < queries.size() && queries[end] <= last) ++end;
    read(head, {queries[first], queries[end - 1] + 1}, keys, [&](const ChunkPart& part) {
      if (part.values == nullptr) return;
      for (size_t i = first; i < end; ++i) {
        const auto end_of_part = held.begin() + part.rows.end;
        const auto at = std::lower_bound(held.begin() + part.rows.begin, end_of_part, queries[i]);
        if (at == end_of_part || *at != queries[i]) continue;
        const int64_t place = at - held.begin() - part.rows.begin;
        std::copy_n(
            part.values + place * part.stride, part.keys.size(),
            out.begin() + static_cast<int64_t>(i) * keys.size() + part.keys.begin - keys.begin);
        copied += part.keys.size();
      }
    });
  }
  return copied == std::ssize(out);
}

std::optional<std::vector<float>> StoredMaps::row(const StoredHead& head, int64_t row) const {
  std::vector<float> values(static_cast<size_t>(head.group->grid.cols));
  const int64_t query = head.facts->queries[static_cast<size_t>(row)];
  if (!read_rows(head, {&query, 1}, head.facts->keys, values)) return std::nullopt;
  return values;
}

double StoredMaps::lse(const StoredHead& head, int64_t row) const {
  if (head.part != nullptr) return head.part->lse(head.in_part(), row);
  if (!head.group->has_lse || !has_sound_lse(head, row)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (!shards_.empty()) return static_cast<double>(shards_[group_of(head)].lse(head.place, row));
  TileReader reader(stored_, file_);
  return static_cast<double>(reader.lse(*head.group, head.place, {row, row + 1}).front());
}

/// True where the LSE of a row is there; each is held against its checksum once, which may throw.
bool StoredMaps::has_sound_lse(const StoredHead& head, int64_t row) const {
  const bool by_tile = shards_.empty() && !complete_ && has_journal_;
  const JournalRecord* const record = by_tile ? tiles_->lse_record(head.task, row) : nullptr;
  if (by_tile && record == nullptr) return false;
  const std::pair key{head.task, record != nullptr ? record->row_begin : 0};
  {
    const std::lock_guard lock(lse_mutex_);
    if (sound_lse_.count(key) != 0) return true;
  }
  bool holds = false;
  if (record != nullptr) {
    holds = tile_holds(head, *record);
  } else if (!shards_.empty()) {
    holds = shards_[group_of(head)].lse_holds(head.place);
  } else {
    const auto read = [&](std::span<std::byte> bytes, int64_t place) {
      file_.read_at(bytes, place);
    };
    uint32_t recorded = 0;
    read(std::as_writable_bytes(std::span(&recorded, 1)),
         head.group->places.lse_checksums + head.place * 4);
    // Without a journal nobody knows more.
    if (!complete_ && recorded == 0) return false;
    holds = lse_holds(*head.group, head.place, read);
  }
  if (!holds) {
    const std::filesystem::path& file = shards_.empty() ? path_ : shards_[group_of(head)].path();
    throw file_error(file.string(), "lse of " + head_text(head),
                     "is not what was written (attnscope verify tells all)");
  }
  const std::lock_guard lock(lse_mutex_);
  sound_lse_.insert(key);
  return true;
}

/// True where a tile's LSEs, and the checksums of its chunks, match the checksum in its record.
bool StoredMaps::tile_holds(const StoredHead& head, const JournalRecord& record) const {
  const ChunkGrid& grid = head.group->grid;
  std::vector<uint32_t> sums;
  for (int64_t c = 0; c < record.chunks; ++c) {
    sums.push_back(recorded_checksum(
        head,
        grid.chunk_number(head.place, record.row_begin / grid.chunk_rows, record.first_chunk + c)));
  }
  const TileReader reader(stored_, file_);
  const IndexRange rows{record.row_begin, record.row_begin + record.rows};
  return record_checksum(sums, reader.lse(*head.group, head.place, rows)) == record.data_checksum;
}

StoredPooledMap pool_stored(const StoredMaps& maps, const StoredHead& head, IndexRange queries,
                            IndexRange keys, int64_t block) {
  StoredPooledMap result;
  PooledMap& map = result.map;
  map.block_rows = map.block_cols = block;
  map.first_row = queries.begin;
  map.first_col = keys.begin;
  map.rows = ceil_div(queries.size(), block);
  map.cols = ceil_div(keys.size(), block);
  BlockPool pool(result, queries, keys);
  maps.read(head, queries, keys,
            [&](const ChunkPart& part) { pool.add(part, head.facts->queries); });
  pool.finish();
  return result;
}

}  // namespace attnscope
