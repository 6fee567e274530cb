#include "io/export/write/export_skeleton.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "io/export/write/call_index.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/export_coordinates.h"
#include "io/files/checksum.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {
namespace {

/// A checksum dataset: uint32, filled in later.
int64_t create_checksums(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                         std::span<const int64_t> shape,
                         std::span<const Hdf5Dataset* const> scales) {
  const Hdf5Dataset dataset = writer.create_dataset(parent, name, Hdf5Writer::file_type<uint32_t>(),
                                                    shape, Hdf5Storage::preallocated);
  writer.attribute(dataset.id(), "algorithm", kChecksumAlgorithm);
  writer.attach_scales(dataset, scales);
  return writer.address(dataset);
}

void create_entries(const Hdf5Writer& writer, hid_t group, hid_t checksums, const ExportGroup& g,
                    const ExportLayout& layout, const ExportScales& scales, GroupPlaces& places) {
  const ChunkGrid& grid = g.grid;
  const auto batch = static_cast<int64_t>(g.batch.size());
  const auto heads = static_cast<int64_t>(g.heads.size());
  const int64_t shape[] = {batch, heads, grid.rows, grid.cols};
  const int64_t chunk[] = {1, 1, grid.chunk_rows, grid.chunk_cols};
  const Hdf5Dataset dataset = writer.create_chunked(
      group, layout.entries_name, entry_type(writer, layout.request.encoding), shape, chunk);
  describe_entries(writer, dataset, layout);
  const Hdf5Dataset* const axes[] = {&scales.batch, &scales.head, &scales.query,
                                     layout.request.outputs ? &scales.channel : &scales.key};
  writer.attach_scales(dataset, axes);
  places.entries = writer.chunk_base(dataset, shape, chunk, grid.chunk_bytes());
  const int64_t sums[] = {batch, heads, grid.row_chunks(), grid.col_chunks()};
  const Hdf5Dataset* const sum_axes[] = {&scales.batch, &scales.head, &scales.query_chunk,
                                         &scales.column_chunk};
  places.entries_checksums =
      create_checksums(writer, checksums, layout.entries_name, sums, sum_axes);
}

void create_lse(const Hdf5Writer& writer, hid_t group, hid_t checksums, const ExportGroup& g,
                const ExportScales& scales, GroupPlaces& places) {
  const auto batch = static_cast<int64_t>(g.batch.size());
  const auto heads = static_cast<int64_t>(g.heads.size());
  const int64_t shape[] = {batch, heads, g.num_rows()};
  const Hdf5Dataset dataset = writer.create_dataset(group, "lse", Hdf5Writer::file_type<float>(),
                                                    shape, Hdf5Storage::preallocated);
  describe_lse(writer, dataset, g);
  const Hdf5Dataset* const axes[] = {&scales.batch, &scales.head, &scales.query};
  writer.attach_scales(dataset, axes);
  places.lse = writer.address(dataset);
  const int64_t sums[] = {batch, heads};
  const Hdf5Dataset* const sum_axes[] = {&scales.batch, &scales.head};
  places.lse_checksums = create_checksums(writer, checksums, "lse", sums, sum_axes);
}

GroupPlaces create_group(const Hdf5Writer& writer, hid_t calls, const ExportSpec& spec,
                         const ExportLayout& layout, const ExportGroup& g) {
  const Hdf5Group group = writer.create_group(calls, g.name);
  const hid_t parent = group.id();
  write_group_attributes(writer, group.id(), spec, g);
  write_part_call(writer, group.id(), spec, g);
  const ExportScales scales = write_coordinates(writer, parent, layout, g, layout.has_entries());
  const Hdf5Group sums = writer.create_group(parent, "checksums");
  const hid_t checksums = sums.id();
  GroupPlaces places;
  if (layout.has_entries()) {
    create_entries(writer, parent, checksums, g, layout, scales, places);
  }
  if (g.has_lse) create_lse(writer, parent, checksums, g, scales, places);
  return places;
}

/// Of what is as large as the smallest group's entries: what is smaller would but leave holes.
Hdf5Writer::Alignment alignment_of(const ExportSpec& spec, const ExportLayout& layout) {
  Hdf5Writer::Alignment alignment;
  if (spec.align == 0) return alignment;
  int64_t smallest = spec.align;
  for (const ExportGroup& group : layout.groups) {
    smallest = std::min(smallest, group.grid.bytes());
  }
  return {std::max(alignment.least, smallest), std::max(alignment.bytes, spec.align)};
}

}  // namespace

ExportPlaces write_export_skeleton(const ExportSpec& spec, const ExportLayout& layout,
                                   const std::filesystem::path& path) {
  const Hdf5Session session;
  Hdf5Writer writer(path, alignment_of(spec, layout));
  ExportPlaces places;
  write_root_attributes(writer, spec);
  {
    const Hdf5Dataset complete = writer.create_dataset(
        writer.root(), "complete", Hdf5Writer::file_type<uint8_t>(), {}, Hdf5Storage::preallocated);
    writer.attribute(complete.id(), "long_name", "1 when every tile is there");
    places.complete = writer.address(complete);
    const Hdf5Dataset structure =
        writer.create_dataset(writer.root(), "structure_checksum",
                              Hdf5Writer::file_type<uint64_t>(), {}, Hdf5Storage::preallocated);
    writer.attribute(structure.id(), "algorithm", "xxh3-64");
    writer.attribute(structure.id(), "long_name",
                     "of all bytes but those of entries, lse, checksums and complete");
    places.structure = writer.address(structure);
    write_call_index(writer, layout.groups);
    const Hdf5Group calls = writer.create_group(writer.root(), "calls");
    for (const ExportGroup& group : layout.groups) {
      places.groups.push_back(create_group(writer, calls.id(), spec, layout, group));
    }
  }
  writer.close();
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) throw file_error(path.string(), "", errno_text(error.value()));
  places.file_bytes = static_cast<int64_t>(bytes);
  return places;
}

}  // namespace attnscope
