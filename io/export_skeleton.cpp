#include "io/export_skeleton.h"

#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/version.h"
#include "io/checksum.h"
#include "io/export_coordinates.h"
#include "io/hdf5_writer.h"

namespace attnscope {
namespace {

void write_root_attributes(const Hdf5Writer& writer, const ExportSpec& spec) {
  const hid_t root = writer.root();
  writer.attribute(root, "format", "attnscope-export/1");
  writer.attribute(root, "product", export_product_name(spec.product));
  writer.attribute(root, "attnscope_version", version());
  writer.attribute(root, "capture", spec.capture_name);
  writer.attribute(root, "capture_hash", spec.capture_hash);
  writer.attribute(root, "options", spec.options_json);
  writer.attribute(root, "Conventions", "CF-1.8");
}

/// For cross attention the grid belongs to the queries and the text to the keys.
void write_group_attributes(const Hdf5Writer& writer, hid_t group, const ExportSpec& spec,
                            const ExportGroup& layout) {
  const CallEntry& call = *layout.call;
  const AttentionProblem& problem = *call.problem;
  const bool cross = call.id.kind == CallKind::cross;
  const TokenGrid& text = cross ? problem.key_tokens() : problem.query_tokens();
  writer.attribute(group, "step", call.id.step);
  writer.attribute(group, "timestep",
                   call.timestep.value_or(std::numeric_limits<double>::quiet_NaN()));
  writer.attribute(group, "layer", call.id.layer);
  writer.attribute(group, "layer_name", call.layer_name);
  writer.attribute(group, "branch", layout.branch);
  writer.attribute(group, "kind", kind_name(call.id.kind));
  writer.attribute(group, "score", score_name(problem.score()));
  writer.attribute(group, "mask", problem.mask().describe());
  writer.attribute(group, "scale", problem.scale());
  writer.attribute(group, "head_dim", problem.head_dim());
  writer.attribute(group, "head_offset", call.head_offset);
  writer.attribute(group, "grid", problem.query_tokens().grid_text());
  writer.attribute(group, "text", text.text_text());
  writer.attribute(group, "model", call.model);
  writer.attribute(group, "prompt", call.prompt);
  writer.attribute(group, "q_dtype", dtype_name(problem.q().dtype()));
  writer.attribute(group, "q_state", call.q_state);
  writer.attribute(group, "backend", spec.backend);
}

void describe_entries(const Hdf5Writer& writer, const Hdf5Dataset& dataset,
                      const ExportLayout& layout) {
  const hid_t id = dataset.id();
  const bool logits = layout.request.quantity == Quantity::logits;
  writer.attribute(
      id, "long_name",
      logits ? "attention logit: scale * q.k + bias" : "attention weight of a key for a query");
  writer.attribute(id, "units", "1");
  if (layout.request.encoding == Encoding::f16_scaled) {
    writer.attribute(id, "scale_factor", 1.0f / kF16Scale);
  }
  if (layout.request.encoding == Encoding::u8_log2) {
    writer.attribute(id, "code_octaves", kCodeOctaves);
    writer.attribute(id, "code_max", int32_t{kCodeMax});
    writer.attribute(id, "code_formula", kCodeFormula);
  }
  writer.attribute(id, "coordinates", kMapCoordinates);
}

hid_t entry_type(const Hdf5Writer& writer, Encoding encoding) {
  switch (encoding) {
    case Encoding::f32:
      return Hdf5Writer::file_type<float>();
    case Encoding::u8_log2:
      return Hdf5Writer::file_type<uint8_t>();
    case Encoding::f16:
    case Encoding::f16_scaled:
      break;
  }
  return writer.half_type();
}

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
  const Hdf5Dataset* const axes[] = {&scales.batch, &scales.head, &scales.query, &scales.key};
  writer.attach_scales(dataset, axes);
  places.entries = writer.chunk_base(dataset, shape, chunk, grid.chunk_bytes());
  const int64_t sums[] = {batch, heads, grid.row_chunks(), grid.col_chunks()};
  const Hdf5Dataset* const sum_axes[] = {&scales.batch, &scales.head, &scales.query_chunk,
                                         &scales.key_chunk};
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
  const bool linear = is_linear(g.call->problem->score());
  writer.attribute(dataset.id(), "long_name",
                   linear ? "natural logarithm of the row's normaliser over all keys"
                          : "natural logarithm of the row's sum of exp(logit) over all keys");
  writer.attribute(dataset.id(), "units", "1");
  writer.attribute(dataset.id(), "coordinates", kQueryCoordinates);
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
  const ExportScales scales = write_coordinates(writer, parent, layout, g);
  const Hdf5Group sums = writer.create_group(parent, "checksums");
  const hid_t checksums = sums.id();
  GroupPlaces places;
  if (layout.has_entries()) {
    create_entries(writer, parent, checksums, g, layout, scales, places);
  }
  if (g.has_lse) create_lse(writer, parent, checksums, g, scales, places);
  return places;
}

}  // namespace

ExportPlaces write_export_skeleton(const ExportSpec& spec, const ExportLayout& layout,
                                   const std::filesystem::path& path) {
  const Hdf5Session session;
  Hdf5Writer writer(path);
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
