#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace attnscope {

/// Where a token is found again in one latent frame of a volume.
struct TrackPoint {
  int64_t t = 0;
  /// Of the largest value, of equal ones the first; nothing where none is above 0.
  std::optional<int64_t> best_y, best_x;
  double best_weight = 0;
  /// The mean position, weighted by the values, in cells: a cell's own place is its centre. Nothing
  /// where they add up to nothing.
  std::optional<double> centre_y, centre_x;
  double mass = 0;  ///< the sum of the frame's values
};

/// A point a frame of a volume [T, H, W] of weights, row-major; sums in double, in its order. Cells
/// that are NaN are left out. Empty where the grid is.
std::vector<TrackPoint> frame_track(std::span<const float> volume, std::array<int64_t, 3> grid);
/// The point of one frame [H, W].
TrackPoint track_point(std::span<const float> frame, int64_t width);

}  // namespace attnscope
