#pragma once

#include <compare>
#include <string>

#include "io/pictures/colour_scale.h"

namespace attnscope::gl {

/// The number of a weight of 0 where numbers are log₂ of weights: −inf is a masked one's.
inline constexpr float kZeroTexel = -65504;
/// Colours of a table, from the low end to the high one: finer than the eye, so that none of them
/// has to be mixed of two.
inline constexpr int kMapColours = 2048;

/// The properties that all pixels of a draw share: each variant has a program of its own.
struct MapVariant {
  bool grid = false;  ///< a GridTexture; else tiles of a pool
  ScaleKind scale = ScaleKind::log2;
  bool texels_are_log2 = true, use_mean = false, by_size = false;  ///< as of MapColours
  bool many = false;  ///< a pixel may have several texels under it
  friend auto operator<=>(const MapVariant&, const MapVariant&) = default;
};

std::string map_vertex_shader();
std::string map_fragment_shader(const MapVariant& variant);
/// Of pixels that were drawn before and kept.
std::string kept_fragment_shader();

}  // namespace attnscope::gl
