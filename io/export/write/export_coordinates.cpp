#include "io/export/write/export_coordinates.h"

#include <numeric>
#include <string>
#include <vector>

#include "io/export/format/describe_group.h"

namespace attnscope {
namespace {

std::vector<int32_t> to_int32(std::span<const int64_t> values) {
  std::vector<int32_t> result;
  result.reserve(values.size());
  for (int64_t value : values) result.push_back(static_cast<int32_t>(value));
  return result;
}

/// The rows or the keys of a group.
struct Axis {
  std::string name;  ///< "query", "key"
  const AxisDescription& tokens;
  const Hdf5Dataset& scale;
};

void write_positions(const Hdf5Writer& writer, hid_t parent, const Axis& axis) {
  const auto extent = static_cast<int64_t>(axis.tokens.indices.size());
  const struct {
    const char* suffix;
    const char* long_name;
    const std::vector<int32_t>& values;
  } parts[] = {{"_t", "latent frame, -1 where there is none", axis.tokens.t},
               {"_y", "latent row, -1 where there is none", axis.tokens.y},
               {"_x", "latent column, -1 where there is none", axis.tokens.x}};
  for (const auto& part : parts) {
    const Hdf5Dataset dataset = writer.write<int32_t>(
        parent, axis.name + part.suffix, std::span(part.values), std::span(&extent, 1));
    writer.attribute(dataset.id(), "long_name", part.long_name);
    const Hdf5Dataset* const scales[] = {&axis.scale};
    writer.attach_scales(dataset, scales);
  }
}

/// [tokens], or [batch, tokens] where the batch items' text is padded from different places on.
void write_segments(const Hdf5Writer& writer, hid_t parent, const Axis& axis,
                    const Hdf5Dataset& batch_scale) {
  const AxisDescription& tokens = axis.tokens;
  const std::vector<uint8_t>& values = tokens.segments;
  std::vector<int64_t> shape{std::ssize(tokens.indices)};
  std::vector<const Hdf5Dataset*> scales{&axis.scale};
  if (tokens.segments_by_item) {
    shape.insert(shape.begin(), std::ssize(values) / std::ssize(tokens.indices));
    scales.insert(scales.begin(), &batch_scale);
  }
  const Hdf5Dataset dataset =
      writer.write<uint8_t>(parent, axis.name + "_segment", std::span(values), std::span(shape));
  std::vector<uint8_t> codes{static_cast<uint8_t>(Segment::text),
                             static_cast<uint8_t>(Segment::video),
                             static_cast<uint8_t>(Segment::padding)};
  std::string meanings = "text video padding", names;
  for (const std::string& name : tokens.named_segments) {
    codes.push_back(static_cast<uint8_t>(codes.size()));
    meanings += " " + name;
    names += (names.empty() ? "" : " ") + name;
  }
  writer.attribute(dataset.id(), "long_name", "part of the sequence");
  writer.attribute(dataset.id(), "flag_values", std::span<const uint8_t>(codes));
  writer.attribute(dataset.id(), "flag_meanings", meanings);
  if (!names.empty()) writer.attribute(dataset.id(), "segment_names", names);
  writer.attach_scales(dataset, scales);
}

/// [text_index], or [batch, text_index] where the items' prompts differ.
void write_text_tokens(const Hdf5Writer& writer, hid_t parent, const GroupDescription& group,
                       const Hdf5Dataset& batch_scale) {
  if (group.text.empty()) return;
  const int64_t length = std::ssize(group.text) / group.text_lists;
  std::vector<int32_t> places(static_cast<size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  const Hdf5Dataset scale =
      write_scale(writer, parent, "text_index", places, "place within the text");
  std::vector<int64_t> shape{length};
  std::vector<const Hdf5Dataset*> scales{&scale};
  if (group.text_lists > 1) {
    shape.insert(shape.begin(), group.text_lists);
    scales.insert(scales.begin(), &batch_scale);
  }
  const Hdf5Dataset dataset =
      writer.write_strings(parent, "text_tokens", std::span(group.text), std::span(shape));
  writer.attribute(dataset.id(), "long_name", "text token");
  writer.attach_scales(dataset, scales);
}

/// [batch, head] or [batch, head, query].
void write_sinks(const Hdf5Writer& writer, hid_t parent, const ExportGroup& group,
                 const GroupDescription& description, const ExportScales& scales) {
  if (description.sinks.empty()) return;
  std::vector<int64_t> shape{std::ssize(group.batch), std::ssize(group.heads)};
  std::vector<const Hdf5Dataset*> axes{&scales.batch, &scales.head};
  if (description.sinks_by_query) {
    shape.push_back(group.num_rows());
    axes.push_back(&scales.query);
  }
  const Hdf5Dataset dataset =
      writer.write<float>(parent, "sinks", std::span(description.sinks), std::span(shape));
  writer.attribute(dataset.id(), "long_name",
                   "logit of the row's sink, which has no key and is part of lse");
  writer.attribute(dataset.id(), "units", "1");
  writer.attach_scales(dataset, axes);
}

/// The first index of each chunk along an axis.
std::vector<int32_t> chunk_starts(const std::vector<int32_t>& indices, int64_t chunk) {
  std::vector<int32_t> starts;
  for (size_t i = 0; i < indices.size(); i += static_cast<size_t>(chunk)) {
    starts.push_back(indices[i]);
  }
  return starts;
}

}  // namespace

Hdf5Dataset write_scale(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                        const std::vector<int32_t>& values, std::string_view long_name,
                        bool variable) {
  const auto extent = static_cast<int64_t>(values.size());
  Hdf5Dataset dataset =
      writer.write<int32_t>(parent, name, std::span(values), std::span(&extent, 1));
  writer.make_scale(dataset, name, extent, variable);
  if (!long_name.empty()) writer.attribute(dataset.id(), "long_name", long_name);
  return dataset;
}

ExportScales write_coordinates(const Hdf5Writer& writer, hid_t parent, const ExportLayout& layout,
                               const ExportGroup& group, bool chunks) {
  const GroupDescription description = describe_group(group);
  const AxisDescription &query = description.query, &key = description.key;
  ExportScales scales;
  scales.batch = write_scale(writer, parent, "batch", to_int32(group.batch), "batch item");
  scales.head = write_scale(writer, parent, "head", to_int32(group.heads), "attention head");
  scales.query =
      write_scale(writer, parent, "query", query.indices, "index in the sequence of queries");
  scales.key = write_scale(writer, parent, "key", key.indices, "index in the sequence of keys");
  std::vector<int32_t> columns = key.indices;
  if (layout.request.outputs) {
    columns.resize(static_cast<size_t>(group.grid.cols));
    std::iota(columns.begin(), columns.end(), 0);
    scales.channel = write_scale(writer, parent, "dv", columns, "channel of V");
  }
  if (chunks) {
    // Dimensions of the checksums alone: netCDF tools need not show them as variables.
    scales.query_chunk = write_scale(writer, parent, "query_chunk",
                                     chunk_starts(query.indices, group.grid.chunk_rows), "", false);
    scales.column_chunk =
        write_scale(writer, parent, layout.request.outputs ? "dv_chunk" : "key_chunk",
                    chunk_starts(columns, group.grid.chunk_cols), "", false);
  }
  for (const Axis& axis : {Axis{"query", query, scales.query}, Axis{"key", key, scales.key}}) {
    write_positions(writer, parent, axis);
    write_segments(writer, parent, axis, scales.batch);
  }
  write_text_tokens(writer, parent, description, scales.batch);
  write_sinks(writer, parent, group, description, scales);
  return scales;
}

}  // namespace attnscope
