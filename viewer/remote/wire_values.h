#pragma once

#include "core/heads/head_sketch.h"
#include "core/problem/model_place.h"
#include "viewer/remote/wire.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

// The fields of the values that travel, in their order in a message.

/// Of the enumerations, the last value.
inline constexpr auto kLastQuantity = Quantity::logits;
inline constexpr auto kLastDifference = Difference::log_ratio;
inline constexpr auto kLastScore = ScoreFunction::Form::linear_normaliser;
inline constexpr auto kLastKind = CallKind::joint;
inline constexpr auto kLastModality = Modality::other;

template <class Wire>
void carry(Wire& wire, IsA<IndexRange> auto& range) {
  wire(range.begin, range.end);
}
template <class Wire>
void carry(Wire& wire, IsA<HeadId> auto& id) {
  wire(id.call, id.batch, id.head, id.order);
}
template <class Wire>
void carry(Wire& wire, IsA<Against> auto& against) {
  wire(against.other);
  wire.choice(against.how, kLastDifference);
}
template <class Wire>
void carry(Wire& wire, IsA<TileId> auto& id) {
  wire(id.head);
  wire.choice(id.quantity, kLastQuantity);
  wire(id.level, id.row, id.col, id.against);
}
template <class Wire>
void carry(Wire& wire, IsA<LineRequest> auto& line) {
  wire(line.head);
  wire.choice(line.quantity, kLastQuantity);
  wire(line.reverse, line.tokens, line.sum);
}
template <class Wire>
void carry(Wire& wire, IsA<ProbeRequest> auto& probe) {
  wire(probe.head, probe.query, probe.key);
}
template <class Wire>
void carry(Wire& wire, IsA<MassRequest> auto& masses) {
  wire(masses.head, masses.rows, masses.keys);
}
template <class Wire>
void carry(Wire& wire, IsA<FrameRequest> auto& frame) {
  wire(frame.number, frame.width, frame.height);
}
template <class Wire>
void carry(Wire& wire, IsA<HeadsCompared> auto& heads) {
  wire(heads.a, heads.b);
}
template <class Wire>
void carry(Wire& wire, IsA<MaskEdit> auto& edit) {
  wire(edit.q0, edit.q1, edit.k0, edit.k1, edit.keep);
}
template <class Wire>
void carry(Wire& wire, IsA<MaskRequest> auto& mask) {
  wire(mask.head, mask.text, mask.block, mask.edits, mask.lost);
}
template <class Wire>
void carry(Wire& wire, IsA<SketchRequest> auto& request) {
  wire(request.head);
}
template <class Wire>
void carry(Wire& wire, IsA<TracksRequest> auto& request) {
  wire(request.head);
}
/// By its place in the variant. Throws Error(file) where there is none.
void carry(WireWriter& wire, const Ask& ask);
void carry(WireReader& wire, Ask& ask);
template <class Wire>
void carry(Wire& wire, IsA<Wish> auto& wish) {
  wire(wish.ask);
  wire.choice(wish.stage, Stage::exact);
}

/// But for its id, which is of who asked.
template <class Wire>
void carry(Wire& wire, IsA<MapTile> auto& tile) {
  wire(tile.rows, tile.cols, tile.rows_per_texel, tile.exact, tile.max);
  // Single entries are their own mean.
  bool alike = tile.mean == tile.max;
  wire(alike);
  if (!alike) {
    wire(tile.mean);
  } else if constexpr (!std::is_const_v<std::remove_reference_t<decltype(tile)>>) {
    tile.mean = tile.max;
  }
}
template <class Wire>
void carry(Wire& wire, IsA<MapLine> auto& line) {
  wire(line.values, line.masked);
}
template <class Wire>
void carry(Wire& wire, IsA<ProbedEntry> auto& e) {
  wire(e.query, e.key, e.weight, e.logit, e.block, e.mean, e.rounded);
}
template <class Wire>
void carry(Wire& wire, IsA<KeyMasses> auto& masses) {
  wire(masses.rows, masses.masses);
}
template <class Wire>
void carry(Wire& wire, IsA<RowDivergence> auto& divergence) {
  wire(divergence.rows, divergence.computed, divergence.exact);
}
template <class Wire>
void carry(Wire& wire, IsA<SketchCells> auto& cells) {
  wire(cells.queries, cells.keys, cells.height, cells.width);
}
template <class Wire>
void carry(Wire& wire, IsA<HeadSketch> auto& sketch) {
  wire(sketch.cells, sketch.max, sketch.mean, sketch.rows, sketch.exact, sketch.numbers);
  wire.choice(sketch.head_class, HeadClass::undefined);
}
template <class Wire>
void carry(Wire& wire, IsA<HeadTracks> auto& t) {
  wire(t.computed, t.exact, t.entropy, t.lse, t.text_mass, t.column_mass, t.query_groups,
       t.key_groups, t.group_mass, t.by_dt, t.by_dy, t.by_dx);
}
template <class Wire>
void carry(Wire& wire, IsA<GreyImage> auto& image) {
  wire(image.width, image.height, image.pixels);
}
template <class Wire>
void carry(Wire& wire, IsA<VideoFrame> auto& frame) {
  wire(frame.image, frame.width, frame.height, frame.problem);
}
template <class Wire>
void carry(Wire& wire, IsA<MaskQuality> auto& q) {
  wire(q.density, q.effective_density, q.recall, q.recall_p05, q.recall_sampled, q.oracle_recall,
       q.oracle_stderr, q.effective_oracle_recall, q.output_error, q.output_error_mean,
       q.output_error_p95, q.masked_rows, q.empty_rows, q.sampled_rows);
}
template <class Wire>
void carry(Wire& wire, IsA<HeadMask> auto& mask) {
  wire(mask.problem, mask.other, mask.block, mask.query_blocks, mask.key_blocks, mask.kept,
       mask.quality, mask.all_rows, mask.mass);
}
template <class Wire>
void carry(Wire& wire, IsA<TileSourceStatus> auto& status) {
  wire(status.queue, status.busy, status.exact_progress, status.exact_seconds_left,
       status.host_bytes, status.problem);
}

template <class Wire>
void carry(Wire& wire, IsA<ModelPlace> auto& place) {
  wire(place.block, place.slot, place.chunk);
  wire(place.unrecorded.step, place.unrecorded.layer, place.unrecorded.branch);
  wire(place.forward.forward, place.forward.of_step, place.forward.call);
}
template <class Wire>
void carry(Wire& wire, IsA<EvictedKeys> auto& keys) {
  wire(keys.queries, keys.keys);
}

/// A list that may not be there, and is shared.
template <class Wire, class T>
void carry_shared(Wire& wire, T& list) {
  using List = std::remove_const_t<typename std::remove_const_t<T>::element_type>;
  bool there = list != nullptr;
  wire(there);
  if (!there) return;
  if constexpr (std::same_as<Wire, WireWriter>) {
    wire(*list);
  } else {
    List read;
    wire(read);
    list = std::make_shared<const List>(std::move(read));
  }
}
template <class Wire>
void carry(Wire& wire, IsA<TokenSegment> auto& s) {
  wire(s.name);
  wire.choice(s.modality, kLastModality);
  wire(s.tokens, s.grid, s.cell, s.first_frame, s.position);
  wire.choice(s.order, CellOrder::listed);
  wire(s.tile, s.valid);
  carry_shared(wire, s.cells);
  carry_shared(wire, s.valid_tokens);
}
void carry(WireWriter& wire, const TokenGrid& tokens);
/// Throws Error(file) where it is no token map.
void carry(WireReader& wire, TokenGrid& tokens);

template <class Wire>
void carry(Wire& wire, IsA<MapSource> auto& call) {
  wire(call.name, call.step, call.layer);
  wire.choice(call.kind, kLastKind);
  wire(call.place, call.branches, call.batch, call.heads, call.queries, call.keys, call.tokens);
  wire.choice(call.score.form, kLastScore);
  wire(call.score.cap, call.sinks, call.mask, call.evicted, call.weights, call.logits, call.block,
       call.rows, call.cols, call.first_row, call.precision, call.about, call.rounding);
}

}  // namespace attnscope
