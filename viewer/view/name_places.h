#pragma once

#include <optional>
#include <span>
#include <vector>

namespace attnscope {

/// A name along an axis, in pixels: the middle of what it names, and its length.
struct AxisName {
  float middle = 0;
  float length = 0;
};

/// Where names along an axis begin, at least `gap` apart, between `low` and `high`; nothing of
/// those that have no room. A name stands over the middle of what it names. The first and the last
/// one move outwards where that leaves their neighbours room, so that a long word at an end
/// ("text") costs no frame its name; after them come the others from the low end on.
std::vector<std::optional<float>> place_names(std::span<const AxisName> names, float low,
                                              float high, float gap);

}  // namespace attnscope
