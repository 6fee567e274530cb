#include "io/export/write/kept_weights.h"

#include <fmt/core.h>

#include <numeric>
#include <span>

namespace attnscope {
namespace {

constexpr const char* kMassName = "kept_mass";
constexpr const char* kMassMeaning = "sum of the row's kept weights";

/// An axis without coordinates. Nothing is written to it, so it takes no space.
Hdf5Dataset write_plain_axis(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                             int64_t extent) {
  Hdf5Dataset axis = writer.create_dataset(parent, name, Hdf5Writer::file_type<uint8_t>(),
                                           std::span(&extent, 1), Hdf5Storage::contiguous);
  writer.make_scale(axis, name, extent, false);
  return axis;
}

}  // namespace

std::array<LargestDataset, 3> largest_datasets() {
  return {{{"topk_weights", Hdf5Writer::file_type<float>(), "largest attention weights, descending",
            true},
           {"topk_keys", Hdf5Writer::file_type<int32_t>(), "their keys; -1 where a row has fewer",
            true},
           {"topk_mass", Hdf5Writer::file_type<float>(), "sum of these weights", false}}};
}

std::vector<int64_t> shape_of(const LargestDataset& dataset, const ExportGroup& group,
                              int64_t keys) {
  std::vector<int64_t> shape{std::ssize(group.batch), std::ssize(group.heads), group.num_rows()};
  if (dataset.by_rank) shape.push_back(keys);
  return shape;
}

Hdf5Dataset write_ranks(const Hdf5Writer& writer, hid_t parent, int64_t keys) {
  std::vector<int32_t> ranks(static_cast<size_t>(keys));
  std::iota(ranks.begin(), ranks.end(), 0);
  return write_scale(writer, parent, "k", ranks, "rank of the key, from the largest weight");
}

void describe_largest(const Hdf5Writer& writer, const Hdf5Dataset& made,
                      const LargestDataset& dataset, const ExportScales& scales,
                      const Hdf5Dataset& ranks) {
  writer.attribute(made.id(), "long_name", dataset.long_name);
  writer.attribute(made.id(), "coordinates", kQueryCoordinates);
  const Hdf5Dataset* const axes[] = {&scales.batch, &scales.head, &scales.query, &ranks};
  writer.attach_scales(made, std::span(axes).first(dataset.by_rank ? 4 : 3));
}

std::vector<std::string> list_names(const ExportGroup& group) {
  std::vector<std::string> names;
  for (const int64_t item : group.batch) {
    for (const int64_t head : group.heads)
      names.push_back(fmt::format("b{:02}_h{:03}", item, head));
  }
  return names;
}

std::array<ListDataset, 4> list_datasets() {
  using Axis = ListDataset::Axis;
  return {
      {{"indices", Hdf5Writer::file_type<int32_t>(), "key of a kept weight", Axis::kept},
       {"data", Hdf5Writer::file_type<float>(), "kept attention weight", Axis::kept},
       {"indptr", Hdf5Writer::file_type<int64_t>(), "where a row's weights begin", Axis::row_edge},
       {kMassName, Hdf5Writer::file_type<float>(), kMassMeaning, Axis::row}}};
}

ListAxes::ListAxes(const Hdf5Writer& writer, hid_t list, const Hdf5Dataset& query, int64_t rows,
                   int64_t kept)
    : writer_(writer),
      query_(query),
      rows_(rows),
      kept_(kept),
      row_edge_(write_plain_axis(writer, list, "row_edge", rows + 1)),
      kept_scale_(write_plain_axis(writer, list, "kept", kept)) {}

int64_t ListAxes::extent(const ListDataset& dataset) const {
  if (dataset.axis == ListDataset::Axis::kept) return kept_;
  return dataset.axis == ListDataset::Axis::row ? rows_ : rows_ + 1;
}

void ListAxes::describe(const Hdf5Dataset& made, const ListDataset& dataset) const {
  writer_.attribute(made.id(), "long_name", dataset.long_name);
  const Hdf5Dataset* const scales[] = {dataset.axis == ListDataset::Axis::kept  ? &kept_scale_
                                       : dataset.axis == ListDataset::Axis::row ? &query_
                                                                                : &row_edge_};
  writer_.attach_scales(made, scales);
}

void write_kept_mass(const Hdf5Writer& writer, hid_t parent, const ExportGroup& group,
                     const ExportScales& scales, const std::string& file) {
  const auto items = std::ssize(group.batch), heads = std::ssize(group.heads);
  const int64_t rows = group.num_rows();
  std::vector<Hdf5Elsewhere> pieces;
  for (const std::string& list : list_names(group)) {
    const auto place = std::ssize(pieces);
    pieces.push_back({file,
                      "/calls/" + group.name + "/" + list + "/" + kMassName,
                      {place / heads, place % heads, 0},
                      {1, 1, rows},
                      {rows}});
  }
  const int64_t shape[] = {items, heads, rows};
  const Hdf5Dataset mass =
      writer.create_virtual(parent, kMassName, Hdf5Writer::file_type<float>(), shape, pieces);
  writer.attribute(mass.id(), "long_name", kMassMeaning);
  writer.attribute(mass.id(), "coordinates", kQueryCoordinates);
  const Hdf5Dataset* const axes[] = {&scales.batch, &scales.head, &scales.query};
  writer.attach_scales(mass, axes);
}

}  // namespace attnscope
