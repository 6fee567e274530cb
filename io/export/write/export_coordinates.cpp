#include "io/export/write/export_coordinates.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace attnscope {
namespace {

std::vector<int32_t> to_int32(std::span<const int64_t> values) {
  std::vector<int32_t> result;
  result.reserve(values.size());
  for (int64_t value : values) result.push_back(static_cast<int32_t>(value));
  return result;
}

Hdf5Dataset write_scale(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                        const std::vector<int32_t>& values, std::string_view long_name,
                        bool variable = true) {
  const auto extent = static_cast<int64_t>(values.size());
  Hdf5Dataset dataset =
      writer.write<int32_t>(parent, name, std::span(values), std::span(&extent, 1));
  writer.make_scale(dataset, name, extent, variable);
  if (!long_name.empty()) writer.attribute(dataset.id(), "long_name", long_name);
  return dataset;
}

/// The rows or the keys of a group, as indices of the sequence.
struct Axis {
  std::string name;  ///< "query", "key"
  const TokenGrid* tokens = nullptr;
  std::vector<int32_t> indices;
  const Hdf5Dataset* scale = nullptr;
};

void write_positions(const Hdf5Writer& writer, hid_t parent, const Axis& axis) {
  const auto extent = static_cast<int64_t>(axis.indices.size());
  const struct {
    const char* suffix;
    const char* long_name;
    int64_t LatentCoord::*member;
  } parts[] = {{"_t", "latent frame, -1 where there is none", &LatentCoord::t},
               {"_y", "latent row, -1 where there is none", &LatentCoord::y},
               {"_x", "latent column, -1 where there is none", &LatentCoord::x}};
  for (const auto& part : parts) {
    std::vector<int32_t> values;
    values.reserve(axis.indices.size());
    for (int32_t index : axis.indices) {
      const std::optional<LatentCoord> coord = axis.tokens->any_coord(index);
      values.push_back(coord ? static_cast<int32_t>((*coord).*part.member) : -1);
    }
    const std::string name = axis.name + part.suffix;
    const Hdf5Dataset dataset =
        writer.write<int32_t>(parent, name, std::span(values), std::span(&extent, 1));
    writer.attribute(dataset.id(), "long_name", part.long_name);
    const Hdf5Dataset* const scales[] = {axis.scale};
    writer.attach_scales(dataset, scales);
  }
}

/// [tokens], or [batch, tokens] where the batch items' text is padded from different places on.
void write_segments(const Hdf5Writer& writer, hid_t parent, const Axis& axis,
                    const std::vector<int64_t>& batch, const Hdf5Dataset& batch_scale) {
  const auto of_item = [&](int64_t item) {
    std::vector<uint8_t> values;
    values.reserve(axis.indices.size());
    for (int32_t index : axis.indices) {
      values.push_back(static_cast<uint8_t>(axis.tokens->segment(index, item)));
    }
    return values;
  };
  std::vector<uint8_t> values = of_item(batch.front());
  std::vector<int64_t> shape{static_cast<int64_t>(values.size())};
  std::vector<const Hdf5Dataset*> scales{axis.scale};
  const bool differs = std::any_of(batch.begin(), batch.end(), [&](int64_t item) {
    return !axis.tokens->same_padding(item, batch.front());
  });
  if (differs) {
    for (size_t i = 1; i < batch.size(); ++i) {
      const std::vector<uint8_t> item = of_item(batch[i]);
      values.insert(values.end(), item.begin(), item.end());
    }
    shape.insert(shape.begin(), static_cast<int64_t>(batch.size()));
    scales.insert(scales.begin(), &batch_scale);
  }
  const Hdf5Dataset dataset =
      writer.write<uint8_t>(parent, axis.name + "_segment", std::span(values), std::span(shape));
  std::vector<uint8_t> codes{static_cast<uint8_t>(Segment::text),
                             static_cast<uint8_t>(Segment::video),
                             static_cast<uint8_t>(Segment::padding)};
  std::string meanings = "text video padding", names;
  for (const std::string& name : axis.tokens->named_segments()) {
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

/// [text_index], or [batch, text_index] where the items' prompts differ; shorter lists are filled
/// up with empty strings.
void write_text_tokens(const Hdf5Writer& writer, hid_t parent, const ExportGroup& group,
                       const Hdf5Dataset& batch_scale) {
  const auto& recorded = group.call->tokens;
  if (recorded.empty()) return;
  std::vector<std::vector<std::string>> lists;
  for (int64_t item : group.batch) {
    lists.push_back(recorded[recorded.size() == 1 ? 0 : static_cast<size_t>(item)]);
  }
  if (std::adjacent_find(lists.begin(), lists.end(), std::not_equal_to<>()) == lists.end()) {
    lists.resize(1);
  }
  size_t length = 0;
  for (const auto& list : lists) length = std::max(length, list.size());
  if (length == 0) return;
  std::vector<std::string> strings;
  for (auto& list : lists) {
    list.resize(length);
    strings.insert(strings.end(), list.begin(), list.end());
  }
  std::vector<int32_t> places(length);
  for (size_t i = 0; i < length; ++i) places[i] = static_cast<int32_t>(i);
  const Hdf5Dataset scale =
      write_scale(writer, parent, "text_index", places, "place within the text");
  std::vector<int64_t> shape{static_cast<int64_t>(length)};
  std::vector<const Hdf5Dataset*> scales{&scale};
  if (lists.size() > 1) {
    shape.insert(shape.begin(), static_cast<int64_t>(lists.size()));
    scales.insert(scales.begin(), &batch_scale);
  }
  const Hdf5Dataset dataset =
      writer.write_strings(parent, "text_tokens", std::span(strings), std::span(shape));
  writer.attribute(dataset.id(), "long_name", "text token");
  writer.attach_scales(dataset, scales);
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

ExportScales write_coordinates(const Hdf5Writer& writer, hid_t parent, const ExportLayout& layout,
                               const ExportGroup& group) {
  const AttentionProblem& problem = *group.call->problem;
  Axis query{"query", &problem.query_tokens(), {}, nullptr};
  for (int64_t i = 0; i < group.num_rows(); ++i) {
    query.indices.push_back(static_cast<int32_t>(group.row_at(i)));
  }
  Axis key{"key", &problem.key_tokens(), {}, nullptr};
  for (int64_t j = group.keys.begin; j < group.keys.end; ++j) {
    key.indices.push_back(static_cast<int32_t>(j));
  }
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
  if (layout.has_entries() && !layout.reduced) {
    // Dimensions of the checksums alone: netCDF tools need not show them as variables.
    scales.query_chunk = write_scale(writer, parent, "query_chunk",
                                     chunk_starts(query.indices, group.grid.chunk_rows), "", false);
    scales.column_chunk =
        write_scale(writer, parent, layout.request.outputs ? "dv_chunk" : "key_chunk",
                    chunk_starts(columns, group.grid.chunk_cols), "", false);
  }
  query.scale = &scales.query;
  key.scale = &scales.key;
  for (const Axis* axis : {&query, &key}) {
    write_positions(writer, parent, *axis);
    write_segments(writer, parent, *axis, group.batch, scales.batch);
  }
  write_text_tokens(writer, parent, group, scales.batch);
  return scales;
}

}  // namespace attnscope
