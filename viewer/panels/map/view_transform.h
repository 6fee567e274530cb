#pragma once

#include "viewer/panels/label_registry.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// By which a notch of the wheel zooms.
inline constexpr double kWheelZoom = 1.25;

/// From entries of the map to pixels and back, where `rect` fills `area` from edge to edge.
struct ViewTransform {
  MapRect rect;
  ScreenRect area;

  double keys_per_pixel() const { return (rect.k1 - rect.k0) / area.width(); }
  double queries_per_pixel() const { return (rect.q1 - rect.q0) / area.height(); }
  float x(double key) const {
    return area.x0 + static_cast<float>((key - rect.k0) / keys_per_pixel());
  }
  float y(double query) const {
    return area.y0 + static_cast<float>((query - rect.q0) / queries_per_pixel());
  }
  double key(float x) const { return rect.k0 + (x - area.x0) * keys_per_pixel(); }
  double query(float y) const { return rect.q0 + (y - area.y0) * queries_per_pixel(); }
};

}  // namespace attnscope
