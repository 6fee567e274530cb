#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/problem/latent_coord.h"
#include "viewer/view/looks/volume_look.h"

namespace attnscope {

/// A place in a volume, in cells: its corners are 0 and the counts of cells.
struct VolumePoint {
  double x = 0, y = 0, t = 0;
};
/// Pixels from a pane's top left corner.
struct PanePoint {
  double x = 0, y = 0;
};

/// How a volume of cells stands before the eye, without perspective, so that cells have one size
/// wherever they are. Columns go to the right, rows down, frames away from the eye; frames are as
/// far apart as makes the volume four fifths as deep as its longer side. A value.
class VolumeCamera {
 public:
  /// For a pane of so many pixels, of which `margin` on each side stay free at a zoom of 1; the
  /// volume has at least one cell.
  VolumeCamera(std::array<int64_t, 3> frames_height_width, const VolumeLook& look, double width,
               double height, double margin = 0);

  PanePoint project(const VolumePoint& point) const;
  /// Where the ray through a place of the pane begins, before the volume.
  VolumePoint ray_start(const PanePoint& at) const;
  /// The way of all rays, in cells: one unit of it is as long as a cell is wide. No part is 0.
  const VolumePoint& way() const { return way_; }
  /// The step of a ray's start, in cells, from one pixel to the next, to the right and down.
  const VolumePoint& across() const { return across_; }
  const VolumePoint& down() const { return down_; }
  /// Of a cell's width.
  double pixels() const { return pixels_; }
  /// True where the face on the near (0) or far side of an axis is turned to the eye.
  bool faces_eye(VolumeAxis axis, bool far_side) const;

 private:
  VolumePoint to_cells(const std::array<double, 3>& world) const;

  std::array<double, 3> size_{};  ///< x, y, t in widths of cells
  double spacing_ = 1;            ///< of frames, in widths of cells
  double pixels_ = 1;
  PanePoint middle_;
  std::array<double, 3> right_{}, up_{}, forward_{};
  VolumePoint way_, across_, down_;
};

/// One of the twelve edges of the volume's box.
struct VolumeEdge {
  VolumeAxis along = VolumeAxis::t;
  VolumePoint from, to;
  bool hidden = false;   ///< behind the volume
  bool outline = false;  ///< between a face that is seen and one that is not
};
std::vector<VolumeEdge> volume_edges(const VolumeCamera& camera,
                                     std::array<int64_t, 3> frames_height_width);
/// The edge that an axis is written along: of those on the outline the lowest, for rows the one
/// furthest to the left. Null where the axis is seen end on.
const VolumeEdge* labelled_edge(const VolumeCamera& camera, std::span<const VolumeEdge> edges,
                                VolumeAxis axis);

/// A number a cell, as the volume's texture has it: the place on the colours in 252 steps from
/// kLeastNumber on, or why there is none. [frames, height, width].
struct VolumeCells {
  static constexpr uint8_t kNothing = 0, kMasked = 1, kMissing = 2, kEvicted = 3;
  static constexpr uint8_t kLeastNumber = 4;
  std::array<int64_t, 3> size{};  ///< frames, height, width
  std::vector<uint8_t> numbers;

  /// Of a place on the colours; beyond 0 … 1 the end's.
  static uint8_t number_of(double unit);
  /// The least number that a threshold lets through.
  static uint8_t least_of(double threshold);
  uint8_t at(const LatentCoord& place) const;
};

/// The cell that is seen where a ray enters the pane at `start`: of the plane the cell where the
/// ray meets it, else that of the largest number from `least` on, the first of several. Nothing:
/// the ray meets none. The definition of what the volume's shader draws.
std::optional<LatentCoord> seen_cell(const VolumeCells& cells, const VolumePoint& start,
                                     const VolumePoint& way, uint8_t least,
                                     const std::optional<VolumeSlice>& slice);

}  // namespace attnscope
