#include "io/export/write/shard_file.h"

#include "io/export/write/call_index.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/export_coordinates.h"
#include "io/export/write/kept_weights.h"
#include "io/files/checksum.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {
namespace {

/// Elements of a chunk of the lists that grow.
constexpr int64_t kListChunk = 64 * 1024;

}  // namespace

ShardFile::ShardFile(const ExportSpec& spec, const ExportLayout& layout, const ExportGroup& group,
                     const std::filesystem::path& path)
    : spec_(spec), layout_(layout), group_(group), writer_(path) {
  write_shard_attributes(writer_, spec, group);
  const uint8_t complete[] = {1};
  writer_.write<uint8_t>(writer_.root(), "complete", complete, {});
  write_call_index(writer_, std::span(&group, 1));
  const Hdf5Group calls = writer_.create_group(writer_.root(), "calls");
  parent_ = writer_.create_group(calls.id(), group.name);
  write_group_attributes(writer_, parent_.id(), spec, group);
  scales_ = write_coordinates(writer_, parent_.id(), layout, group, spec.gzip);
  if (spec.gzip) {
    create_entries();
  } else if (spec.product == ExportProduct::topk) {
    create_topk();
  } else {
    lists_ = list_names(group);
  }
}

int64_t ShardFile::write(const PreparedTile& tile) {
  if (spec_.gzip) return write_entries(tile);
  return spec_.product == ExportProduct::topk ? write_topk(tile) : write_kept(tile);
}

void ShardFile::close() {
  if (spec_.gzip) finish_entries();
  if (!lists_.empty()) write_kept_mass(writer_, parent_.id(), group_, scales_, ".");
  entries_ = {};
  keys_ = {};
  mass_ = {};
  scales_ = {};
  head_group_ = {};
  parent_ = {};
  writer_.close();
}

void ShardFile::create_entries() {
  const ChunkGrid& grid = group_.grid;
  const int64_t shape[] = {num_items(), num_heads(), grid.rows, grid.cols};
  const int64_t chunk[] = {1, 1, grid.chunk_rows, grid.chunk_cols};
  entries_ = writer_.create_deflated(parent_.id(), layout_.entries_name,
                                     entry_type(writer_, layout_.request.encoding), shape, chunk,
                                     grid.element_bytes);
  describe_entries(writer_, entries_, layout_);
  const Hdf5Dataset* const axes[] = {&scales_.batch, &scales_.head, &scales_.query, &scales_.key};
  writer_.attach_scales(entries_, axes);
  checksums_.resize(static_cast<size_t>(grid.chunks()));
  if (group_.has_lse) lse_.resize(static_cast<size_t>(grid.heads * grid.rows));
}

int64_t ShardFile::write_entries(const PreparedTile& tile) {
  const ChunkGrid& grid = group_.grid;
  const int64_t row_chunk = tile.rows.begin / grid.chunk_rows;
  int64_t bytes = 0;
  for (size_t i = 0; i < tile.chunks.size(); ++i) {
    const int64_t col_chunk = tile.first_chunk + static_cast<int64_t>(i);
    checksums_[static_cast<size_t>(grid.chunk_number(tile.head, row_chunk, col_chunk))] =
        tile.checksums[i];
    if (tile.chunks[i].empty()) continue;
    const int64_t begin[] = {tile.head / num_heads(), tile.head % num_heads(),
                             row_chunk * grid.chunk_rows, col_chunk * grid.chunk_cols};
    writer_.write_stored_chunk(entries_, begin, tile.chunks[i], layout_.entries_name);
    bytes += static_cast<int64_t>(tile.chunks[i].size());
  }
  std::copy(tile.lse.begin(), tile.lse.end(),
            lse_.begin() + (tile.lse.empty() ? 0 : tile.head * grid.rows + tile.rows.begin));
  return bytes + static_cast<int64_t>(tile.lse.size()) * 4;
}

void ShardFile::write_sums(const Hdf5Group& sums, const std::string& name,
                           std::span<const uint32_t> values, std::span<const int64_t> shape,
                           std::span<const Hdf5Dataset* const> axes) {
  const Hdf5Dataset dataset = writer_.write<uint32_t>(sums.id(), name, values, shape);
  writer_.attribute(dataset.id(), "algorithm", kChecksumAlgorithm);
  writer_.attach_scales(dataset, axes);
}

void ShardFile::finish_entries() {
  const ChunkGrid& grid = group_.grid;
  const Hdf5Group sums = writer_.create_group(parent_.id(), "checksums");
  const int64_t shape[] = {num_items(), num_heads(), grid.row_chunks(), grid.col_chunks()};
  const Hdf5Dataset* const axes[] = {&scales_.batch, &scales_.head, &scales_.query_chunk,
                                     &scales_.column_chunk};
  write_sums(sums, layout_.entries_name, checksums_, shape, axes);
  if (!group_.has_lse) return;
  const int64_t lse_shape[] = {num_items(), num_heads(), grid.rows};
  const Hdf5Dataset lse =
      writer_.write<float>(parent_.id(), "lse", std::span<const float>(lse_), lse_shape);
  describe_lse(writer_, lse, group_);
  const Hdf5Dataset* const lse_axes[] = {&scales_.batch, &scales_.head, &scales_.query};
  writer_.attach_scales(lse, lse_axes);
  std::vector<uint32_t> lse_sums;
  for (int64_t head = 0; head < grid.heads; ++head) {
    const auto rows = std::span<const float>(lse_).subspan(static_cast<size_t>(head * grid.rows),
                                                           static_cast<size_t>(grid.rows));
    lse_sums.push_back(checksum(std::as_bytes(rows)));
  }
  const int64_t head_shape[] = {num_items(), num_heads()};
  const Hdf5Dataset* const head_axes[] = {&scales_.batch, &scales_.head};
  write_sums(sums, "lse", lse_sums, head_shape, head_axes);
}

void ShardFile::create_topk() {
  const int64_t kept = spec_.kept_largest().keys;
  const Hdf5Dataset ranks = write_ranks(writer_, parent_.id(), kept);
  const auto create = [&](const LargestDataset& d) {
    Hdf5Dataset dataset = writer_.create_dataset(
        parent_.id(), d.name, d.type, shape_of(d, group_, kept), Hdf5Storage::contiguous);
    describe_largest(writer_, dataset, d, scales_, ranks);
    return dataset;
  };
  const auto [weights, keys, mass] = largest_datasets();
  entries_ = create(weights);
  keys_ = create(keys);
  mass_ = create(mass);
}

int64_t ShardFile::write_topk(const PreparedTile& tile) {
  const int64_t begin[] = {tile.head / num_heads(), tile.head % num_heads(), tile.rows.begin, 0};
  const int64_t count[] = {1, 1, tile.rows.size(), spec_.kept_largest().keys};
  writer_.write_block<float>(entries_, tile.weights, begin, count, "topk_weights");
  writer_.write_block<int32_t>(keys_, tile.keys, begin, count, "topk_keys");
  writer_.write_block<float>(mass_, tile.mass, std::span(begin).first(3), std::span(count).first(3),
                             "topk_mass");
  return static_cast<int64_t>(tile.keys.size()) * 8 + tile.rows.size() * 4;
}

/// Opens the group of the head that begins.
void ShardFile::begin_head(int64_t head) {
  head_group_ = writer_.create_group(parent_.id(), lists_[static_cast<size_t>(head)]);
  const auto [keys, weights, starts, mass] = list_datasets();
  keys_ = writer_.create_growing(head_group_.id(), keys.name, keys.type, kListChunk);
  entries_ = writer_.create_growing(head_group_.id(), weights.name, weights.type, kListChunk);
  starts_.assign(1, 0);
  kept_.clear();
}

void ShardFile::finish_head() {
  const hid_t list = head_group_.id();
  const ListAxes axes(writer_, list, scales_.query, group_.num_rows(), starts_.back());
  const auto [keys, weights, starts, mass] = list_datasets();
  axes.describe(keys_, keys);
  axes.describe(entries_, weights);
  const int64_t edges = axes.extent(starts), rows = axes.extent(mass);
  axes.describe(writer_.write<int64_t>(list, starts.name, std::span<const int64_t>(starts_),
                                       std::span(&edges, 1)),
                starts);
  axes.describe(
      writer_.write<float>(list, mass.name, std::span<const float>(kept_), std::span(&rows, 1)),
      mass);
}

int64_t ShardFile::write_kept(const PreparedTile& tile) {
  if (tile.rows.begin == 0) begin_head(tile.head);
  writer_.append<int32_t>(keys_, tile.keys, starts_.back(), "indices");
  writer_.append<float>(entries_, tile.weights, starts_.back(), "data");
  for (const int64_t count : tile.counts) starts_.push_back(starts_.back() + count);
  kept_.insert(kept_.end(), tile.mass.begin(), tile.mass.end());
  if (tile.rows.end == group_.num_rows()) finish_head();
  return static_cast<int64_t>(tile.keys.size()) * 8 + tile.rows.size() * 12;
}

}  // namespace attnscope
