#include "io/export/read/stored_shards.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/read/lse_check.h"
#include "io/files/checksum.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

constexpr int64_t kMaxShardIndices = 1 << 20;

/// Where the object header of a dataset stands.
uint64_t header_address(const Hdf5Reader& reader, const Hdf5Dataset& d, const std::string& what) {
  const Hdf5Properties creation(H5Fget_create_plist(reader.root()), reader.path(), what);
  hsize_t block = 0;
  reader.check(H5Pget_userblock(creation.id(), &block), what);
  if (block != 0) reader.bad("", "has a user block, which attnscope writes none of");
  H5O_info_t info{};
  reader.check(H5Oget_info1(d.id(), &info), what);
  return info.addr;
}

Json read_structure(const std::string& path, const Json& group_name) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  const std::string where = "calls/" + group_name.get<std::string>();
  const Hdf5Group group(H5Gopen2(reader.root(), where.c_str(), H5P_DEFAULT), path, where);
  Json json;
  json["batch"] = reader.integers(group.id(), "batch", kMaxShardIndices);
  json["heads"] = reader.integers(group.id(), "head", kMaxShardIndices);
  const std::string entries =
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
  json["chunk"] = chunk;
  json["element_bytes"] = H5Tget_size(type.id());
  json["header"] = header_address(reader, d, entries);
  json["filters"] = Json::array();
  for (const Hdf5Filter& filter : reader.filters(creation)) {
    json["filters"].push_back({filter.id, filter.values});
  }
  const std::string sums = "checksums/" + entries;
  const Hdf5Dataset checksums = reader.dataset(group.id(), sums);
  json["checksums_shape"] = reader.shape(checksums, sums);
  json["checksums"] = reader.address(checksums, sums);
  if (H5Lexists(group.id(), "lse", H5P_DEFAULT) > 0) {
    const Hdf5Dataset lse = reader.dataset(group.id(), "lse");
    json["lse_shape"] = reader.shape(lse, "lse");
    json["lse"] = reader.address(lse, "lse");
    json["lse_checksums"] =
        reader.address(reader.dataset(group.id(), "checksums/lse"), "checksums/lse");
  }
  return json;
}

/// The group's shape; nothing where the datasets do not fit each other.
std::optional<StoredGroup> group_of(const Json& json, const std::string& name) {
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
  grid.chunk_rows = chunk[2];
  grid.chunk_cols = chunk[3];
  const std::vector extents{std::ssize(group.batch), std::ssize(group.heads)};
  const auto fits = [&](const std::vector<int64_t>& whole, size_t rank) {
    return whole.size() == rank && std::equal(extents.begin(), extents.end(), whole.begin());
  };
  if (!fits(shape, 4) || shape[2] < 1 || shape[3] < 1 || chunk[0] != 1 || chunk[1] != 1 ||
      chunk[2] < 1 || chunk[3] < 1) {
    return std::nullopt;
  }
  grid.rows = shape[2];
  grid.cols = shape[3];
  const int64_t one[] = {chunk[2], chunk[3], grid.element_bytes};
  const int64_t all[] = {grid.heads,
                         ceil_div(grid.rows, chunk[2]),
                         ceil_div(grid.cols, chunk[3]),
                         chunk[2],
                         chunk[3],
                         grid.element_bytes};
  const auto bytes = checked_count(one);
  if (!bytes || *bytes > kMaxPackedChunkBytes || !checked_count(all)) return std::nullopt;
  const auto sums = json["checksums_shape"].get<std::vector<int64_t>>();
  if (!fits(sums, 4) || sums[2] != grid.row_chunks() || sums[3] != grid.col_chunks()) {
    return std::nullopt;
  }
  if (json.contains("lse")) {
    const auto lse = json["lse_shape"].get<std::vector<int64_t>>();
    if (!fits(lse, 3) || lse[2] != grid.rows) return std::nullopt;
    group.has_lse = true;
    group.places.lse = json["lse"].get<int64_t>();
    group.places.lse_checksums = json["lse_checksums"].get<int64_t>();
  }
  return group;
}

/// "calls/NAME/weights: batch 0 head 3 rows from 384, columns from 0".
std::string chunk_name(const StoredGroup& group, int64_t head, int64_t row_chunk,
                       int64_t col_chunk) {
  const auto heads = static_cast<int64_t>(group.heads.size());
  return fmt::format("calls/{}/{}: batch {} head {} rows from {}, columns from {}", group.name,
                     group.entries_name, group.batch[static_cast<size_t>(head / heads)],
                     group.heads[static_cast<size_t>(head % heads)],
                     row_chunk * group.grid.chunk_rows, col_chunk * group.grid.chunk_cols);
}

}  // namespace

const HelperQuestion kShardQuestion{"the structure of a shard", read_structure};

StoredShard::StoredShard(const std::filesystem::path& path, const std::string& name)
    : file_(std::make_shared<InputFile>(path)) {
  const std::string file = path.string();
  const Json json = ask_helper(kShardQuestion, file, name);
  auto group = group_of(json, name);
  if (!group) throw file_error(file, name, "its datasets do not fit each other");
  group_ = std::move(*group);
  packing_.chunk_bytes = group_.grid.chunk_bytes();
  for (const Json& filter : json["filters"]) {
    const auto known = chunk_filter(filter[0].get<int>(), filter[1].get<std::vector<unsigned>>());
    if (!known) throw file_error(file, name, "is packed by a filter that attnscope does not use");
    packing_.filters.push_back(*known);
  }
  checksums_ = json["checksums"].get<int64_t>();
  index_.emplace(file_, "calls/" + name + "/" + group_.entries_name, json["header"].get<int64_t>(),
                 group_.grid.chunks());
}

ChunkCache::Bytes StoredShard::chunk(ChunkCache& cache, int64_t head, int64_t row_chunk,
                                     int64_t col_chunk) const {
  const int64_t number = group_.grid.chunk_number(head, row_chunk, col_chunk);
  return cache.get({file_.get(), number}, [&] {
    return read_chunk(number, chunk_name(group_, head, row_chunk, col_chunk));
  });
}

std::vector<std::byte> StoredShard::read_chunk(int64_t number, const std::string& where) const {
  const std::string name = file_->path().string();
  uint32_t recorded = 0;
  file_->read_at(checksums_ + number * 4, std::as_writable_bytes(std::span(&recorded, 1)));
  const auto place = index_->place(number);
  std::vector<std::byte> stored;
  if (place) {
    const std::string fault = place_fault(*place, packing_, file_->size());
    if (!fault.empty()) throw file_error(name, where, fault);
    stored.resize(static_cast<size_t>(place->bytes));
    file_->read_at(place->offset, stored);
  }
  // That of a chunk which was left out is over no bytes.
  if (checksum(stored) != recorded) throw file_error(name, where, "is not what was written");
  if (!place) return std::vector<std::byte>(static_cast<size_t>(packing_.chunk_bytes));
  return unpack_chunk(std::move(stored), place->skipped, packing_, name, where);
}

float StoredShard::lse(int64_t head, int64_t row) const {
  float value = 0;
  file_->read_at(group_.places.lse + (head * group_.grid.rows + row) * 4,
                 std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

bool StoredShard::lse_holds(int64_t head) const {
  return attnscope::lse_holds(group_, head, [&](std::span<std::byte> bytes, int64_t place) {
    file_->read_at(place, bytes);
  });
}

}  // namespace attnscope
