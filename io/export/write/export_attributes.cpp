#include "io/export/write/export_attributes.h"

#include <limits>

#include "core/base/version.h"
#include "io/export/write/export_coordinates.h"
#include "io/segments/segment_json.h"

namespace attnscope {

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
  if (const ModelPlace& place = call.id.place; place.is_recorded()) {
    writer.attribute(group, "block", place.block);
    writer.attribute(group, "slot", place.slot);
  }
  if (call.id.place.has_chunk()) writer.attribute(group, "chunk", call.id.place.chunk);
  writer.attribute(group, "branch", layout.branch);
  writer.attribute(group, "kind", kind_name(call.id.kind));
  writer.attribute(group, "score", score_name(problem.score()));
  writer.attribute(group, "mask", problem.mask().describe());
  writer.attribute(group, "scale", problem.scale());
  writer.attribute(group, "head_dim", problem.head_dim());
  writer.attribute(group, "head_offset", call.head_offset);
  writer.attribute(group, "grid", problem.query_tokens().grid_text());
  writer.attribute(group, "text", text.text_text());
  for (const auto& [name, tokens] :
       {std::pair("queries", &problem.query_tokens()), {"keys", &problem.key_tokens()}}) {
    // A call whose token map was stated has one of both.
    if (tokens->has_map()) writer.attribute(group, name, segments_json(*tokens).dump());
  }
  writer.attribute(group, "model", call.model);
  writer.attribute(group, "prompt", call.prompt);
  writer.attribute(group, "q_dtype", dtype_name(call.recorded_dtype()));
  writer.attribute(group, "q_state", call.q_state);
  writer.attribute(group, "backend", spec.backend);
}

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

void describe_lse(const Hdf5Writer& writer, const Hdf5Dataset& dataset, const ExportGroup& group) {
  const bool linear = is_linear(group.call->problem->score());
  writer.attribute(dataset.id(), "long_name",
                   linear ? "natural logarithm of the row's normaliser over all keys"
                          : "natural logarithm of the row's sum of exp(logit) over all keys");
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
