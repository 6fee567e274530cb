#pragma once

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/placed_map.h"

namespace attnscope {

/// One side of the map: its tokens along pixels from `low` to `high` that show places `first` to
/// `last` (not rounded).
struct RulerAxis {
  TokenNames tokens;
  const PlacedSide& side;  ///< the order that they stand in
  float low = 0, high = 0;
  double first = 0, last = 0;
  bool vertical = false;
  bool equal = false;  ///< the map's other side has the same scale
  /// Of the label that lies over the ruler; names stand beside it.
  std::optional<ScreenRect> taken = {};

  double pixels_per_token() const { return (high - low) / (last - first); }
  float at(double token) const {
    return low + static_cast<float>((token - first) * pixels_per_token());
  }
  double place(float pixel) const { return first + (pixel - low) / pixels_per_token(); }
  /// The part from one pixel to another.
  RulerAxis part(float from, float to) const {
    return {tokens, side, from, to, place(from), place(to), vertical, equal};
  }
};

RulerAxis key_axis(const Scene& scene, const ViewTransform& view);
RulerAxis query_axis(const Scene& scene, const ViewTransform& view);

/// A ruler of frames and the text, and under it rows or single tokens where they have room. `rect`
/// is the ruler's own area beside the map. `mark` is the token under the mouse, with its colour.
void draw_ruler(const Ui& ui, const ScreenRect& rect, const RulerAxis& axis,
                std::optional<int64_t> mark, ImU32 mark_colour);

/// Lines between frames, and around the text, over the map.
void draw_frame_lines(const Ui& ui, const ScreenRect& map, const RulerAxis& axis);

}  // namespace attnscope
