#include "io/export/write/export_attributes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "io/export/format/describe_group.h"
#include "io/export/format/export_part_json.h"
#include "io/export/write/export_coordinates.h"
#include "io/files/json_types.h"

namespace attnscope {

namespace {

void write_root(const Hdf5Writer& writer, const ExportSpec& spec, const std::string& capture_hash) {
  const hid_t root = writer.root();
  writer.attribute(root, "format", "attnscope-export/1");
  writer.attribute(root, "product", export_product_name(spec.product));
  writer.attribute(root, "attnscope_version", version());
  writer.attribute(root, "capture", spec.capture_name);
  writer.attribute(root, "capture_hash", capture_hash);
  writer.attribute(root, "options", spec.options_json);
  writer.attribute(root, "Conventions", "CF-1.8");
}

}  // namespace

void write_root_attributes(const Hdf5Writer& writer, const ExportSpec& spec) {
  write_root(writer, spec, spec.capture_hash);
  if (!spec.share) return;
  writer.attribute(writer.root(), "shard", spec.share->part.share.text());
  writer.attribute(writer.root(), "plan_hash", spec.share->part.plan_hash);
  writer.attribute(writer.root(), "part", export_part_json(spec));
}

void write_shard_attributes(const Hdf5Writer& writer, const ExportSpec& spec,
                            const ExportGroup& group) {
  size_t call = 0;
  while (call < spec.calls.size() && spec.calls[call].selected.call != group.call) ++call;
  write_root(writer, spec,
             call < spec.call_hashes.size() ? spec.call_hashes[call] : spec.capture_hash);
}

void write_group_attributes(const Hdf5Writer& writer, hid_t group, const ExportSpec& spec,
                            const ExportGroup& layout) {
  const CallDescription call = describe_call(layout, spec.backend);
  const Unrecorded& unrecorded = call.name.place.unrecorded;
  writer.attribute(group, "step", unrecorded.step ? kNotRecorded : call.name.step);
  writer.attribute(group, "timestep", call.timestep);
  writer.attribute(group, "layer", unrecorded.layer ? kNotRecorded : call.name.layer);
  writer.attribute(group, "layer_name", call.layer_name);
  if (const ModelPlace& place = call.name.place; place.is_recorded()) {
    writer.attribute(group, "block", place.block);
    writer.attribute(group, "slot", place.slot);
  }
  if (call.name.place.has_chunk()) writer.attribute(group, "chunk", call.name.place.chunk);
  for (const ForwardFact& fact : kForwardFacts) {
    const int64_t number = call.name.place.forward.*fact.number;
    if (number != fact.none) writer.attribute(group, fact.name, number);
  }
  writer.attribute(group, "branch", unrecorded.branch ? "" : call.name.branch);
  writer.attribute(group, "kind", call.name.kind);
  writer.attribute(group, "score", call.score);
  writer.attribute(group, "mask", call.mask);
  if (!call.sinks.empty()) writer.attribute(group, "sinks", call.sinks);
  if (call.scale.size() == 1) {
    writer.attribute(group, "scale", call.scale.front());
  } else {
    writer.attribute(group, "scale", std::span<const double>(call.scale));
  }
  writer.attribute(group, "head_dim", call.head_dim);
  writer.attribute(group, "head_offset", call.head_offset);
  writer.attribute(group, "grid", call.grid);
  writer.attribute(group, "text", call.text);
  // A call whose token map was stated has one of both.
  if (call.queries) writer.attribute(group, "queries", *call.queries);
  if (call.keys) writer.attribute(group, "keys", *call.keys);
  writer.attribute(group, "model", call.model);
  writer.attribute(group, "prompt", call.prompt);
  writer.attribute(group, "q_dtype", call.q_dtype);
  writer.attribute(group, "q_state", call.q_state);
  writer.attribute(group, "backend", call.backend);
  if (spec.product == ExportProduct::threshold) {
    writer.attribute(group, "threshold", spec.kept_above().weight);
  }
  const std::string names = call.not_recorded();
  if (!names.empty()) writer.attribute(group, kNotRecordedName, names);
}

void write_part_call(const Hdf5Writer& writer, hid_t group, const ExportSpec& spec,
                     const ExportGroup& layout) {
  if (!spec.share) return;
  writer.attribute(group, "part_call",
                   call_description_json(describe_call(layout, spec.backend))
                       .dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

namespace {

bool is_capped(const ExportLayout& layout) {
  return std::any_of(layout.groups.begin(), layout.groups.end(), [](const ExportGroup& group) {
    return describe_call(group, "").score.starts_with("softcap");
  });
}

}  // namespace

void describe_entries(const Hdf5Writer& writer, const Hdf5Dataset& dataset,
                      const ExportLayout& layout) {
  const hid_t id = dataset.id();
  if (layout.request.outputs) {
    writer.attribute(id, "long_name", "attention output: sum over all keys of weight * v");
    writer.attribute(id, "coordinates", kQueryCoordinates);
    return;
  }
  const bool logits = layout.request.quantity == Quantity::logits;
  writer.attribute(
      id, "long_name",
      !logits ? "attention weight of a key for a query"
      : is_capped(layout)
          ? "attention logit: c * tanh(scale * q.k / c) + bias, c of the score softcap:c"
          : "attention logit: scale * q.k + bias");
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

void describe_lse(const Hdf5Writer& writer, const Hdf5Dataset& dataset, const ExportGroup& group) {
  const CallDescription call = describe_call(group, "");
  writer.attribute(dataset.id(), "long_name",
                   call.is_linear() ? "natural logarithm of the row's normaliser over all keys"
                   : call.sinks.empty()
                       ? "natural logarithm of the row's sum of exp(logit) over all keys"
                       : "natural logarithm of the row's sum of exp(logit) over all keys and the "
                         "row's sink");
  writer.attribute(dataset.id(), "units", "1");
  writer.attribute(dataset.id(), "coordinates", kQueryCoordinates);
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

}  // namespace attnscope
