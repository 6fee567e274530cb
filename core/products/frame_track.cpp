#include "core/products/frame_track.h"

#include <cmath>

namespace attnscope {

TrackPoint track_point(std::span<const float> frame, int64_t width) {
  TrackPoint point;
  double sum_y = 0, sum_x = 0;
  for (size_t i = 0; i < frame.size(); ++i) {
    const double value = frame[i];
    if (std::isnan(value)) continue;
    const int64_t y = static_cast<int64_t>(i) / width, x = static_cast<int64_t>(i) % width;
    if (value > point.best_weight) {
      point.best_weight = value;
      point.best_y = y;
      point.best_x = x;
    }
    point.mass += value;
    sum_y += value * static_cast<double>(y);
    sum_x += value * static_cast<double>(x);
  }
  if (point.mass > 0) {
    point.centre_y = sum_y / point.mass;
    point.centre_x = sum_x / point.mass;
  }
  return point;
}

std::vector<TrackPoint> frame_track(std::span<const float> volume, std::array<int64_t, 3> grid) {
  const auto& [frames, height, width] = grid;
  std::vector<TrackPoint> track;
  const auto cells = static_cast<size_t>(height * width);
  if (cells == 0) return track;
  for (int64_t t = 0; t < frames; ++t) {
    track.push_back(track_point(volume.subspan(static_cast<size_t>(t) * cells, cells), width));
    track.back().t = t;
  }
  return track;
}

}  // namespace attnscope
