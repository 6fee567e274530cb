#pragma once

#include <array>
#include <vector>

#include "viewer/panels/widgets.h"
#include "viewer/view/row/volume_camera.h"

namespace attnscope {

/// Lines and words around and in a volume: its box, its axes, cells of it. Borrows all of it for
/// one frame.
class VolumeBox {
 public:
  /// The volume as it stands in `area`. Sizes are frames, height, width.
  VolumeBox(const Ui& ui, const ScreenRect& area, const VolumeCamera& camera,
            const std::array<int64_t, 3>& size);

  /// The edges behind the volume, or those before and beside it.
  void draw_edges(bool behind) const;
  /// The outline of a plane.
  void draw_plane(const VolumeSlice& slice) const;
  /// Which frame, row and column is where: "t0", "t5" …
  void draw_axes() const;
  /// A cell's own edges; a small cell is ringed.
  void mark_cell(const LatentCoord& at, ImU32 colour) const;

 private:
  ImVec2 at(const VolumePoint& point) const;
  void draw_axis(VolumeAxis axis) const;

  const Ui& ui_;
  const ScreenRect& area_;
  const VolumeCamera& camera_;
  std::array<int64_t, 3> size_;
  std::vector<VolumeEdge> edges_;
};

}  // namespace attnscope
