#pragma once

#include "io/pictures/colour_scale.h"

namespace attnscope {

/// The numbers of a ColourScale for a shader: with v the number of a texel (2^texel for weights)
/// times `factor` and t(v) by `kind`, the place in the colours is (t(v) - low) / (high - low).
struct ShaderScale {
  ScaleKind kind = ScaleKind::log2;  ///< t: log2 v, v, sqrt v, sign(v) * log2(1 + |v| / linear)
  float factor = 1;
  float low = 0, high = 1;  ///< t of the range's ends
  float linear = 1;         ///< symlog: about where its linear part ends
  friend bool operator==(const ShaderScale&, const ShaderScale&) = default;
};
ShaderScale shader_scale(const ColourScale& scale, double factor);

}  // namespace attnscope
