#include "io/export/read/stored_shards.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/child_task.h"
#include "io/hdf5/hdf5_reader.h"

namespace attnscope {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxIndices = 1 << 20;
constexpr size_t kKeptPieces = 4;
constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr int64_t kMaxChunkBytes = int64_t{16} << 20;

/// Chunks in a row that are unpacked together.
int64_t piece_chunks(const ChunkGrid& grid) {
  return std::max<int64_t>(1, kPieceBytes / grid.chunk_bytes());
}

std::string read_structure(const std::string& path, const std::string& name) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  const std::string where = "calls/" + name;
  const Hdf5Group group(H5Gopen2(reader.root(), where.c_str(), H5P_DEFAULT), path, where);
  Json json;
  json["batch"] = reader.integers(group.id(), "batch", kMaxIndices);
  json["heads"] = reader.integers(group.id(), "head", kMaxIndices);
  const char* const entries =
      H5Lexists(group.id(), "weights", H5P_DEFAULT) > 0 ? "weights" : "logits";
  json["entries_name"] = entries;
  const Hdf5Dataset d = reader.dataset(group.id(), entries);
  const Hdf5Properties creation(H5Dget_create_plist(d.id()), path, entries);
  hsize_t chunk[4] = {};
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED || H5Pget_external_count(creation.id()) != 0 ||
      H5Pget_chunk(creation.id(), 4, chunk) != 4) {
    reader.bad(entries, "is not stored as attnscope stores it");
  }
  const Hdf5Type type(H5Dget_type(d.id()), path, entries);
  json["shape"] = reader.shape(d, entries);
  json["chunk"] = {chunk[2], chunk[3]};
  json["element_bytes"] = H5Tget_size(type.id());
  if (H5Lexists(group.id(), "lse", H5P_DEFAULT) > 0) {
    const Hdf5Dataset lse = reader.dataset(group.id(), "lse");
    json["lse_shape"] = reader.shape(lse, "lse");
    json["lse"] = reader.address(lse, "lse");
  }
  return json.dump();
}

/// Rows and columns of one head's entries, as they are stored.
std::string read_entries(const std::string& path, const StoredGroup& group, int64_t head,
                         IndexRange rows, IndexRange cols) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  const std::string name = "calls/" + group.name + "/" + group.entries_name;
  const Hdf5Dataset d = reader.dataset(reader.root(), name);
  const Hdf5Type type(H5Dget_type(d.id()), path, name);
  const auto heads = static_cast<int64_t>(group.heads.size());
  const auto size = [](int64_t n) { return static_cast<hsize_t>(n); };
  const hsize_t begin[] = {size(head / heads), size(head % heads), size(rows.begin),
                           size(cols.begin)};
  const hsize_t count[] = {1, 1, size(rows.size()), size(cols.size())};
  const Hdf5Space file(H5Dget_space(d.id()), path, name);
  reader.check(H5Sselect_hyperslab(file.id(), H5S_SELECT_SET, begin, nullptr, count, nullptr),
               name);
  const Hdf5Space memory(H5Screate_simple(4, count, nullptr), path, name);
  std::string bytes(static_cast<size_t>(rows.size() * cols.size() * group.grid.element_bytes),
                    '\0');
  if (static_cast<int64_t>(H5Tget_size(type.id())) != group.grid.element_bytes) {
    reader.bad(name, "has changed");
  }
  reader.check(H5Dread(d.id(), type.id(), memory.id(), file.id(), H5P_DEFAULT, bytes.data()), name);
  return bytes;
}

}  // namespace

StoredGroup read_shard_group(const std::filesystem::path& shard, const std::string& name) {
  const std::string path = shard.string();
  const Json json = Json::parse(run_in_child(path, [&] { return read_structure(path, name); }));
  StoredGroup group;
  group.name = name;
  group.entries_name = json["entries_name"].get<std::string>();
  group.batch = json["batch"].get<std::vector<int64_t>>();
  group.heads = json["heads"].get<std::vector<int64_t>>();
  const auto shape = json["shape"].get<std::vector<int64_t>>();
  const auto chunk = json["chunk"].get<std::vector<int64_t>>();
  ChunkGrid& grid = group.grid;
  grid.heads = static_cast<int64_t>(group.batch.size() * group.heads.size());
  grid.element_bytes = json["element_bytes"].get<int64_t>();
  grid.chunk_rows = chunk[0];
  grid.chunk_cols = chunk[1];
  bool good = shape.size() == 4 && shape[0] * shape[1] == grid.heads && shape[2] > 0 &&
              shape[3] > 0 && chunk[0] > 0 && chunk[1] > 0;
  if (good) {
    grid.rows = shape[2];
    grid.cols = shape[3];
    const int64_t all[] = {grid.heads,
                           ceil_div(grid.rows, chunk[0]),
                           ceil_div(grid.cols, chunk[1]),
                           chunk[0],
                           chunk[1],
                           grid.element_bytes};
    const int64_t one[] = {chunk[0], chunk[1], grid.element_bytes};
    const auto bytes = checked_count(one);
    good = checked_count(all).has_value() && bytes && *bytes <= kMaxChunkBytes;
  }
  if (good && json.contains("lse")) {
    const auto lse = json["lse_shape"].get<std::vector<int64_t>>();
    good = lse.size() == 3 && lse[0] * lse[1] == grid.heads && lse[2] == grid.rows;
    group.has_lse = true;
    group.places.lse = json["lse"].get<int64_t>();
  }
  if (!good) throw file_error(path, name, "its datasets do not fit each other");
  return group;
}

int64_t CompressedChunks::kept_bytes(const ChunkGrid& grid) {
  const int64_t piece = piece_chunks(grid) * grid.chunk_bytes();
  // Those that are kept, one on its way from the child in two copies, and a chunk.
  return (static_cast<int64_t>(kKeptPieces) + 2) * piece + grid.chunk_bytes();
}

const CompressedChunks::WorkItem& CompressedChunks::piece(const std::filesystem::path& shard,
                                                          const StoredGroup& group, int64_t head,
                                                          int64_t row_chunk, int64_t first_chunk) {
  for (auto it = pieces_.begin(); it != pieces_.end(); ++it) {
    if (it->head == head && it->row_chunk == row_chunk && it->first_chunk == first_chunk &&
        it->shard == shard) {
      pieces_.splice(pieces_.begin(), pieces_, it);
      return *it;
    }
  }
  if (pieces_.size() == kKeptPieces) pieces_.pop_back();
  const ChunkGrid& grid = group.grid;
  const IndexRange rows{row_chunk * grid.chunk_rows,
                        std::min(grid.rows, (row_chunk + 1) * grid.chunk_rows)};
  const IndexRange cols{first_chunk * grid.chunk_cols,
                        std::min(grid.cols, (first_chunk + piece_chunks(grid)) * grid.chunk_cols)};
  const std::string name = shard.string();
  std::string bytes =
      run_in_child(name, [&] { return read_entries(name, group, head, rows, cols); });
  if (static_cast<int64_t>(bytes.size()) != rows.size() * cols.size() * grid.element_bytes) {
    throw file_error(name, group.name, "its entries cannot be read");
  }
  pieces_.push_front({shard, head, row_chunk, first_chunk, cols, std::move(bytes)});
  return pieces_.front();
}

std::vector<std::byte> CompressedChunks::chunk(const std::filesystem::path& shard,
                                               const StoredGroup& group, int64_t head,
                                               int64_t row_chunk, int64_t col_chunk) {
  const ChunkGrid& grid = group.grid;
  const std::lock_guard lock(mutex_);
  const WorkItem& from =
      piece(shard, group, head, row_chunk, col_chunk / piece_chunks(grid) * piece_chunks(grid));
  std::vector<std::byte> chunk(static_cast<size_t>(grid.chunk_bytes()));
  const IndexRange cols{col_chunk * grid.chunk_cols,
                        std::min(grid.cols, (col_chunk + 1) * grid.chunk_cols)};
  const int64_t rows = std::min(grid.chunk_rows, grid.rows - row_chunk * grid.chunk_rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row * from.cols.size() + cols.begin - from.cols.begin;
    std::memcpy(chunk.data() + row * grid.chunk_cols * grid.element_bytes,
                from.bytes.data() + at * grid.element_bytes,
                static_cast<size_t>(cols.size() * grid.element_bytes));
  }
  return chunk;
}

}  // namespace attnscope
