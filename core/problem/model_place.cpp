#include "core/problem/model_place.h"

namespace attnscope {

std::string ModelPlace::text() const {
  return block + (block.empty() || slot.empty() ? "" : ".") + slot;
}

std::string layer_text(int64_t layer, const ModelPlace& place) {
  const std::string name = place.text();
  const bool named = layer == kNoLayer && !name.empty();
  std::string text = named ? name : "layer " + std::to_string(layer);
  if (!named && !name.empty()) text += " " + name;
  return place.has_chunk() ? text + " chunk " + std::to_string(place.chunk) : text;
}

}  // namespace attnscope
