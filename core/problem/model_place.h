#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace attnscope {

/// The layer of a call that is made outside the model's main stack of blocks.
inline constexpr int64_t kNoLayer = -1;

/// Where in the model an attention call is made: the block with its number
/// ("transformer_blocks.7"), and the attention's name within the block ("attn1"). Empty where they
/// were not recorded.
struct ModelPlace {
  std::string block, slot;

  bool is_recorded() const { return !block.empty() || !slot.empty(); }
  /// "transformer_blocks.7.attn1"; what is not recorded is left out.
  std::string text() const;

  friend auto operator<=>(const ModelPlace&, const ModelPlace&) = default;
};

/// "layer 7", "layer 7 transformer_blocks.7.attn1", "refiner.0.attn": how lines name a call's
/// layer.
std::string layer_text(int64_t layer, const ModelPlace& place);

}  // namespace attnscope
