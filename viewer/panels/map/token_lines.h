#pragma once

#include <optional>
#include <span>
#include <string>

#include "viewer/panels/data_marks.h"
#include "viewer/panels/map/view_transform.h"

namespace attnscope {

/// Where the rulers stand, on which picked tokens are named.
struct RulerAreas {
  ScreenRect top, left;
};

/// Marks rows of the map (`keys`: columns) through their middles; those that are high enough to be
/// read in are marked at both sides. `tokens` in any order.
void mark_tokens(const Ui& ui, const Scene& scene, const ViewTransform& view,
                 std::span<const int64_t> tokens, bool keys, MarkStroke stroke);

/// The picked tokens' rows, or columns where the view is reversed.
void draw_picked(const Ui& ui, const Scene& scene, const ViewTransform& view);
/// Their name at the ruler, "q 3,5,6", "k text 4 «red»", "q mean of 12", where they are seen.
struct PickedChip {
  std::string name;
  ScreenRect rect;
  bool keys = false;
  int64_t place = 0;  ///< along its side
};
std::optional<PickedChip> picked_chip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                                      const RulerAreas& rulers);
void draw_chip(const Ui& ui, const PickedChip& chip);

}  // namespace attnscope
