#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace attnscope {

/// The layer of a call that is made outside the model's main stack of blocks.
inline constexpr int64_t kNoLayer = -1;

/// The chunk of a call that is no piece of a stream.
inline constexpr int64_t kNoChunk = -1;

/// Where an attention call is made. In the model: the block with its number
/// ("transformer_blocks.7"), and the attention's name within the block ("attn1"); empty where they
/// were not recorded. In a stream that comes piece by piece, whose keys a cache keeps: the piece.
struct ModelPlace {
  std::string block, slot;
  int64_t chunk = kNoChunk;

  /// Whether block or slot are known.
  bool is_recorded() const { return !block.empty() || !slot.empty(); }
  bool has_chunk() const { return chunk != kNoChunk; }
  /// "transformer_blocks.7.attn1"; what is not recorded is left out.
  std::string text() const;

  friend auto operator<=>(const ModelPlace&, const ModelPlace&) = default;
};

/// "layer 7", "layer 7 transformer_blocks.7.attn1", "refiner.0.attn", "layer 7 chunk 2": how lines
/// name a call's layer.
std::string layer_text(int64_t layer, const ModelPlace& place);

}  // namespace attnscope
