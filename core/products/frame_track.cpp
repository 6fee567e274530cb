#include "core/products/frame_track.h"

#include <cmath>

namespace attnscope {

std::vector<TrackPoint> frame_track(std::span<const float> volume, std::array<int64_t, 3> grid) {
  const auto& [frames, height, width] = grid;
  std::vector<TrackPoint> track;
  if (height * width == 0) return track;
  size_t at = 0;
  for (int64_t t = 0; t < frames; ++t) {
    TrackPoint point;
    point.t = t;
    double sum_y = 0, sum_x = 0;
    bool any = false;
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const double value = volume[at++];
        if (std::isnan(value)) continue;
        if (!any || value > point.best_weight) {
          point.best_weight = value;
          point.best_y = y;
          point.best_x = x;
          any = true;
        }
        point.mass += value;
        sum_y += value * static_cast<double>(y);
        sum_x += value * static_cast<double>(x);
      }
    }
    if (point.mass > 0) {
      point.centre_y = sum_y / point.mass;
      point.centre_x = sum_x / point.mass;
    }
    track.push_back(point);
  }
  return track;
}

}  // namespace attnscope
