#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

/// A rectangle of a map that is kept or dropped whatever a mask says of it: queries [q0, q1), keys
/// [k0, k1), in tokens.
struct MaskEdit {
  int64_t q0 = 0, q1 = 0, k0 = 0, k1 = 0;
  bool keep = false;

  IndexRange queries() const { return {q0, q1}; }
  IndexRange keys() const { return {k0, k1}; }
  friend auto operator<=>(const MaskEdit&, const MaskEdit&) = default;
};

/// The mask with these rectangles kept or dropped, where they overlap as the later one says. Throws
/// Error(usage) where the mask may hold finite biases, and of an edit that is empty; check_shape()
/// does of one that goes beyond the map.
Mask edited_mask(const Mask& mask, std::vector<MaskEdit> edits);

}  // namespace attnscope
