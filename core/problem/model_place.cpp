#include "core/problem/model_place.h"

namespace attnscope {

std::string ModelPlace::text() const {
  return block + (block.empty() || slot.empty() ? "" : ".") + slot;
}

std::string layer_text(int64_t layer, const ModelPlace& place) {
  if (layer == kNoLayer && place.is_recorded()) return place.text();
  return "layer " + std::to_string(layer) + (place.is_recorded() ? " " : "") + place.text();
}

}  // namespace attnscope
